"""The command line: the client of a service, `rota dev`, `rota serve`, `rota worker` and
`rota admin …`.

Commands import what they need when they run, so `rota --help` and `rota dev --stop` load neither
the service nor the SDK.
"""

from typing import Annotated

import typer

from rota.cli import admin, agents, decisions, keys, login, policies, schedules, tools
from rota.cli.audit import receipt
from rota.cli.inbox.command import inbox
from rota.cli.listen import listen
from rota.cli.mcp import mcp
from rota.cli.session import client_command
from rota.cli.start import serve, worker
from rota.cli.usage import usage
from rota.dev.command import dev

cli = typer.Typer(
    no_args_is_help=True,
    help="Rota runs tasks with AI agents and lets people approve what the agents do.",
)
SERVICE = "Run the service"
WORK = "Work with agents"

for group, name in (
    (decisions.commands, "tasks"),
    (agents.commands, "agents"),
    (tools.commands, "tools"),
    (schedules.commands, "schedules"),
    (policies.policies, "policies"),
    (policies.rules, "rules"),
    (receipt, "receipt"),
):
    cli.add_typer(group, name=name, rich_help_panel=WORK)
client_command(cli, panel=WORK)(inbox)
client_command(cli, panel=WORK)(usage)
client_command(cli, panel=WORK)(listen)
client_command(cli, panel=WORK)(mcp)
login.add_to(cli)
cli.add_typer(keys.commands, name="keys", rich_help_panel=login.PANEL)
cli.command(rich_help_panel=SERVICE)(dev)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"rota {version('rota')}")
        raise typer.Exit


@cli.callback()
def rota(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


cli.command(rich_help_panel=SERVICE)(serve)
cli.command(rich_help_panel=SERVICE)(worker)
cli.add_typer(admin.commands, name="admin", rich_help_panel=SERVICE)


def main() -> None:
    cli()
