"""`rota admin restore …`: what an operator runs around a restore of PostgreSQL."""

import contextlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from rota.cli.runtime import (
    act_as_operator,
    operator_settings,
    owner_url,
    run_or_exit,
    with_composition,
)

restore = typer.Typer(
    no_args_is_help=True,
    help="Collect what must survive a restore of PostgreSQL, and finish it.",
    callback=act_as_operator,
)

IgnoreConnections = Annotated[
    bool,
    typer.Option(
        "--ignore-connections", help="Do not check that every serve and worker is stopped."
    ),
]
FORMATS = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%d")


def _moment(text: str) -> datetime:
    """A time in UTC, or how long ago it was."""
    if found := re.fullmatch(r"([1-9][0-9]{0,4})([hd])", text):
        unit = {"h": timedelta(hours=1), "d": timedelta(days=1)}[found[2]]
        return datetime.now(UTC) - int(found[1]) * unit
    for form in FORMATS:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC)
    raise typer.BadParameter(f"{text!r} is not a time. Write 2026-11-17T09:30:00Z or 26h.")


@restore.command()
def collect(
    since: Annotated[
        datetime,
        typer.Option(
            parser=_moment,
            metavar="TIME",
            help="The moment to which PostgreSQL is restored (UTC), or how long ago: 26h or 2d.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            help="The file to write. It must not exist. In a folder, the file gets the name "
            "collected-TIME.jsonl."
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="URL",
            help="The database to read. Default: ROTA_DATABASE_URL.",
            envvar="ROTA_RESTORE_FROM_URL",
        ),
    ] = None,
    final: Annotated[
        bool,
        typer.Option(
            "--final",
            help="Every serve and worker is stopped, so nothing happens after this file.",
        ),
    ] = False,
    ignore_connections: IgnoreConnections = False,
) -> None:
    """Save which erasures, revocations and cancellations have happened since a point in time.

    Run it on the database that you are going to replace, while it can still be read. The command
    only reads.

    Examples:

    rota admin restore collect --final --since 2026-11-17T09:30:00Z --output FILE

    rota admin restore collect --since 26h --output FOLDER
    """
    from rota.restore.commands import collect_command

    if output.is_dir():
        output /= f"collected-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.jsonl"
    settings = None if source else operator_settings()
    url = settings.database_url.get_secret_value() if settings else source or ""
    run_or_exit(
        collect_command(
            url,
            settings,
            since,
            output,
            final=final,
            ignore_connections=ignore_connections,
        )
    )


@restore.command()
def finish(
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", help="A file of `collect`. Can be used several times."),
    ] = None,
    without_file: Annotated[
        bool,
        typer.Option(
            "--without-file",
            help="There is no file. All sessions end. Later erasures, revocations and "
            "cancellations are lost, and open tasks can repeat calls of tools.",
        ),
    ] = False,
    nothing_lost: Annotated[
        bool,
        typer.Option(
            "--nothing-lost",
            help="The database has everything: a replica took over, or it moved to another server.",
        ),
    ] = False,
    accept_problems: Annotated[
        bool, typer.Option("--accept-problems", help="Finish even if problems are left.")
    ] = False,
    ignore_connections: IgnoreConnections = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help=(
                "Apply files even if the database has been in use since. Undoes what people "
                "changed."
            ),
        ),
    ] = False,
) -> None:
    """Make a restored database safe to serve. Until then, `rota serve` and `rota worker` refuse it.

    The command applies what the files contain, ends the runs in Temporal, clears Redis, repairs
    payments from Stripe, and verifies the ledgers and audit trails. Stop all processes first.

    Example: rota admin restore finish --file collected.jsonl
    """
    from rota.restore.commands import finish_command

    if [bool(files), without_file, nothing_lost].count(True) != 1:
        raise typer.BadParameter("Use one of --file, --without-file and --nothing-lost.")
    # Some statements change rows of all accounts.
    settings = operator_settings().model_copy(update={"database_statement_timeout_s": 3_600.0})
    with_composition(
        settings,
        lambda parts: finish_command(
            parts,
            owner_url(settings),
            files or (),
            nothing_lost=nothing_lost,
            accept_problems=accept_problems,
            ignore_connections=ignore_connections,
            again=again,
        ),
    )
