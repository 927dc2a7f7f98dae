"""`rota admin restore`: collects what must survive, and finishes a restore."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import typer

from rota.composition import Composition
from rota.platform import redis as redis_clients
from rota.platform.database_errors import EXPLAINED, explain
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.restore import file
from rota.restore.collection import collect
from rota.restore.finishing import Finishing


async def collect_command(
    url: str,
    settings: Settings | None,
    since: datetime,
    path: Path,
    *,
    final: bool,
    ignore_connections: bool,
) -> None:
    """`settings` are those that have the URL. None: it is from `--from`."""
    redis = None
    if settings is not None:
        redis = redis_clients.connect(settings.redis_url.get_secret_value(), settings.redis_ca_file)
    try:
        accounts = await collect(
            url, since, path, redis, final=final, ignore_connections=ignore_connections
        )
    except EXPLAINED as error:
        raise StartRefused(explain(error, "ROTA_DATABASE_URL" if settings else "--from")) from error
    finally:
        if redis is not None:
            await redis.aclose()
    typer.echo(f"{path} has the state of {accounts} accounts that changed since {since}.")


async def finish_command(
    parts: Composition,
    owner_url: str,
    paths: Sequence[Path],
    *,
    nothing_lost: bool,
    accept_problems: bool,
    ignore_connections: bool,
    again: bool,
) -> None:
    """Applies the files. Without files, what was lost is unknown. Exits with 1 if problems are
    left, and processes do not start until they are solved or accepted."""
    finishing = Finishing(parts, owner_url, typer.echo)
    if nothing_lost:
        await finishing.accept(lost=False)
        typer.echo("Processes can now start on this server.")
        return
    survivors = await finishing.check(
        file.read(paths) if paths else None, ignore_connections=ignore_connections, again=again
    )
    await finishing.run(survivors)
    problems = finishing.report.problems
    for problem in problems:
        typer.secho(problem, err=True)
    if problems and not accept_problems:
        typer.secho(
            f"Problems left: {len(problems)}. The service will not start. Fix them and run "
            "the command again, or run it with --accept-problems.",
            err=True,
        )
        raise typer.Exit(1)
    await finishing.accept(lost=True)
    typer.echo("The restore is finished. Start the service and the workers.")
