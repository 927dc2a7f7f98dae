"""`rota admin doctor`."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from rota.cli.output import print_json
from rota.cli.runtime import problems_of
from rota.cli.text import safe_line

_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}
# The longest name of a check.
_WIDTH = len("migration login")


def silence_logs() -> None:
    """Only the findings are printed. They contain what a log would."""
    import logging

    import structlog

    logging.disable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    call_models: Annotated[
        bool,
        typer.Option(
            "--model-calls/--no-model-calls",
            help="Ask every model one short question. Its provider bills it.",
        ),
    ] = True,
) -> None:
    """Check everything that Rota needs, and say how to fix what is wrong.

    Run it with the settings of a worker. It changes nothing. It exits with 1 if a check failed.

    Example: rota admin doctor --no-model-calls
    """
    from pydantic import ValidationError

    from rota.doctor.examination import examine
    from rota.doctor.finding import Finding, failed
    from rota.platform.settings import Settings

    silence_logs()

    found: list[Finding] = []

    def report(finding: Finding) -> None:
        found.append(finding)
        if not as_json:
            status = typer.style(f"{finding.status:<7}", fg=_STYLES[finding.status])
            typer.echo(f"{finding.check:<{_WIDTH}}  {status}  {safe_line(finding.message)}")

    async def examine_all(settings: Settings) -> None:
        async for finding in examine(settings, call_models=call_models):
            report(finding)

    try:
        settings = Settings()
    except ValidationError as error:
        for problem in problems_of(error):
            report(failed("settings", problem))
    else:
        asyncio.run(examine_all(settings))
    succeeded = all(finding.status != "failed" for finding in found)
    if as_json:
        print_json({"ok": succeeded, "checks": [asdict(finding) for finding in found]})
    if not succeeded:
        raise typer.Exit(1)
