"""`rota admin agents …`: the catalog of agents."""

from pathlib import Path
from typing import Annotated

import typer

from rota.cli.runtime import (
    act_as_operator,
    exit_on_error,
    operator_settings,
    owner_url,
    parse_id,
    with_composition,
)

commands = typer.Typer(
    no_args_is_help=True,
    help="Check and load the catalog of agents, and compare versions.",
    callback=act_as_operator,
)


@commands.command()
def sync(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="The folder with the agent files. Default: the catalog that ships with Rota."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the changes without making them.")
    ] = False,
    add_only: Annotated[
        bool, typer.Option("--add-only", help="Keep agents that have no file.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Retire agents that have no file without asking.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Make the catalog match the agent files in a folder.

    The command shows what changes. It asks before it retires agents that have no file. If one file
    is invalid, nothing changes.

    Example: rota admin agents sync agents/ --add-only
    """
    from rota.agents.commands import sync_command

    url = owner_url(operator_settings())
    with exit_on_error():
        sync_command(url, folder, dry_run=dry_run, add_only=add_only, yes=yes, as_json=as_json)


@commands.command()
def check(
    folder: Annotated[Path, typer.Argument(help="The folder with the agent files.")],
) -> None:
    """Check agent files without a database, for example in CI.

    The command prints every problem, and exits with 1 if there is one. It does not know the names
    of agents that are only in the database.

    Example: rota admin agents check agents/
    """
    from rota.agents.commands import check_command

    check_command(folder)


@commands.command()
def compare(
    agent: Annotated[str, typer.Argument(help="The name of the agent.")],
    account: Annotated[str, typer.Option(help="The account whose tasks to use (acct_…).")],
    before: Annotated[int, typer.Option("--from", min=1, help="The version that ran the tasks.")],
    after: Annotated[int, typer.Option("--to", min=1, help="The version to compare it with.")],
    tasks: Annotated[
        int, typer.Option(min=1, max=100, help="How many of the newest tasks to use.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run past tasks against another version of their agent, with recorded tool results.

    No tool is called and nothing is written. The model is asked, and its provider bills the calls;
    the account pays nothing.

    Example: rota admin agents compare bug-triager --account acct_… --from 1 --to 2 --tasks 5
    """
    from rota.runs.commands import compare_command

    settings = operator_settings()
    account_id = parse_id("acct", account)
    with_composition(
        settings,
        lambda parts: compare_command(
            parts.db,
            parts.schema_checks,
            settings,
            account_id,
            (agent, before, after),
            limit=tasks,
            as_json=as_json,
        ),
    )
