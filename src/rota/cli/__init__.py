"""The command line: the client of a service, `rota dev`, `rota serve`, `rota worker` and
`rota admin …`.

Commands import what they need when they run, so `rota --help` and `rota dev --stop` load neither
the service nor the SDK.
"""

import asyncio
import signal
from typing import Annotated

import typer

from rota.cli import admin, agents, decisions, keys, login, schedules, tools
from rota.cli.inbox.command import inbox
from rota.cli.listen import listen
from rota.cli.runtime import check_start, exit_on_error, load_settings
from rota.cli.session import client_command
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
):
    cli.add_typer(group, name=name, rich_help_panel=WORK)
client_command(cli, panel=WORK)(inbox)
client_command(cli, panel=WORK)(usage)
client_command(cli, panel=WORK)(listen)
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


@cli.command(rich_help_panel=SERVICE)
def serve() -> None:
    """Serve the HTTP API.

    The settings come from ROTA_* environment variables.
    """
    from rota.app import create_app
    from rota.platform.http.server import run
    from rota.platform.telemetry import observe

    settings = load_settings()
    with exit_on_error():
        observe(settings, "rota-serve")
    check_start(settings)
    app = create_app(settings)
    run(app, settings, on_stop=app.state.streams.close)


@cli.command(rich_help_panel=SERVICE)
def worker() -> None:
    """Run the agents' tasks.

    Start as many workers as you need: they share the work. The settings come from ROTA_*
    environment variables.
    """
    import uvloop

    from rota.platform.telemetry import observe
    from rota.worker import run_worker

    settings = load_settings()
    with exit_on_error():
        observe(settings, "rota-worker")
    check_start(settings)

    async def work() -> None:
        stop = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        await run_worker(settings, stop)

    with exit_on_error():
        uvloop.run(work())


cli.add_typer(admin.commands, name="admin", rich_help_panel=SERVICE)


def main() -> None:
    cli()
