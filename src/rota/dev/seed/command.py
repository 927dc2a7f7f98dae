"""The command `rota admin seed`."""

import asyncio

import asyncpg
import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from rota.dev.seed import Plan, Seeded, SeedRefused, seed
from rota.platform import ids


def seed_command(
    database_url: str, tasks: int, accounts: int | None, largest: int | None, *, append: bool
) -> None:
    """Seeds with a progress bar. Exits with 1 and one line if that is not possible."""
    try:
        plan = Plan.of(tasks, accounts, largest)
        seeded = _seed_with_progress(database_url, plan, append=append)
    except (SeedRefused, ValueError) as error:
        problem = str(error)
    except asyncpg.UndefinedTableError:
        problem = "The database has no tables yet. Run: rota admin migrate"
    except (OSError, asyncpg.PostgresError) as error:
        problem = f"Cannot use the database ({error}). Check ROTA_MIGRATION_DATABASE_URL."
    else:
        rate = plan.tasks / seeded.seconds
        account = ids.to_wire("acct", seeded.largest_account)
        typer.echo(
            f"Created {plan.tasks} tasks in {seeded.seconds:.0f} s ({rate:.0f} per second)."
            f" The largest account is {account}. To open it, add yourself:\n"
            f"  rota admin companies set-member {account} <your user ID> --role owner"
        )
        return
    typer.secho(problem, err=True)
    raise typer.Exit(1)


def _seed_with_progress(database_url: str, plan: Plan, *, append: bool) -> Seeded:
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    ) as progress:
        bars: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=total)
            progress.update(bars[stage], completed=done)

        return asyncio.run(seed(database_url, plan, append=append, on_progress=show))
