"""The command line: the client of a service, `rota dev`, `rota serve`, `rota worker`,
`rota router` and `rota admin …`.

Commands import what they need when they run, so `rota --help` and `rota dev --stop` load neither
the service nor the SDK.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rota.cli import (
    account,
    admin,
    agents,
    decisions,
    keys,
    login,
    notifications,
    policies,
    schedules,
    tools,
    webhooks,
)
from rota.cli.api import api
from rota.cli.audit import receipt
from rota.cli.exits import ExitCode, json_errors, print_error
from rota.cli.inbox.command import inbox
from rota.cli.listen import listen
from rota.cli.mcp import mcp
from rota.cli.session import client_command
from rota.cli.start import router, serve, worker
from rota.cli.usage import usage
from rota.dev.command import dev


class Program(TyperGroup):
    """The program. With --json, also errors in the command itself are JSON."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        extra |= {"windows_expand_args": windows_expand_args}
        given = list(sys.argv[1:] if args is None else args)
        options = given[: given.index("--")] if "--" in given else given
        if "--json" not in options or not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, **extra)
        with json_errors():
            try:
                code = super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
            except typer.TyperException as error:
                print_error(error.format_message())
                code = error.exit_code
            except typer.Abort:
                code = ExitCode.ERROR
        sys.exit(code)


cli = typer.Typer(
    cls=Program,
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
    (notifications.notifications, "notifications"),
    (policies.policies, "policies"),
    (policies.rules, "rules"),
    (webhooks.commands, "webhooks"),
    (receipt, "receipt"),
):
    cli.add_typer(group, name=name, rich_help_panel=WORK)
client_command(cli, panel=WORK)(inbox)
client_command(cli, panel=WORK)(usage)
client_command(cli, panel=WORK)(listen)
client_command(cli, panel=WORK)(api)
client_command(cli, panel=WORK)(mcp)
login.add_to(cli)
cli.add_typer(keys.commands, name="keys", rich_help_panel=login.PANEL)
cli.add_typer(account.commands, name="account", rich_help_panel=login.PANEL)
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
cli.command(rich_help_panel=SERVICE)(router)
cli.add_typer(admin.commands, name="admin", rich_help_panel=SERVICE)


def main() -> None:
    cli()
