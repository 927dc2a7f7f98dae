"""The command line: dev, serve, worker, migrate, agents, keys, accounts, ledger, payments,
openapi, bench.

Commands import what they need when they are called: a command that only stops
something should not wait for the whole service to load.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from pydantic import ValidationError

from rota import __version__
from rota.dev.command import dev
from rota.platform.settings import Settings

cli = typer.Typer(
    no_args_is_help=True, help="Hand work to named AI agents and stay in charge of it."
)
keys = typer.Typer(no_args_is_help=True, help="The keys that sign session tokens.")
companies = typer.Typer(no_args_is_help=True, help="Company accounts and their members.")
agents = typer.Typer(no_args_is_help=True, help="The catalog of agents.")
ledger = typer.Typer(no_args_is_help=True, help="The books of every account's money.")
payments = typer.Typer(no_args_is_help=True, help="What is sold, and what was paid.")
secrets = typer.Typer(no_args_is_help=True, help="Secrets that are kept in the database.")
bench = typer.Typer(no_args_is_help=True, help="What measuring the service at size takes.")
cli.add_typer(agents, name="agents")
cli.add_typer(keys, name="keys")
cli.add_typer(companies, name="accounts")
cli.add_typer(ledger, name="ledger")
cli.add_typer(payments, name="payments")
cli.add_typer(secrets, name="secrets")
cli.add_typer(bench, name="bench")
cli.command()(dev)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rota {__version__}")
        raise typer.Exit


@cli.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Options of every command."""


def _settings() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        for problem in error.errors():
            name = "_".join(str(part) for part in problem["loc"]).upper()
            typer.secho(f"ROTA_{name}: {problem['msg']}" if name else problem["msg"], err=True)
        raise typer.Exit(2) from None


def _owner_url(settings: Settings) -> str:
    return (settings.migration_database_url or settings.database_url).get_secret_value()


@cli.command()
def serve() -> None:
    """Serve the HTTP API. Settings come from ROTA_* variables."""
    from rota.app import create_app
    from rota.platform.http.server import run
    from rota.platform.telemetry import observe

    settings = _settings()
    observe(settings, "rota-serve")
    app = create_app(settings)
    run(app, settings, on_stop=app.state.streams.close)


@cli.command()
def worker() -> None:
    """Carry out runs. Start as many as the work needs; they share it by themselves."""
    import uvloop

    from rota.platform.telemetry import observe
    from rota.worker import run_worker

    settings = _settings()
    observe(settings, "rota-worker")

    async def work() -> None:
        stop = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        await run_worker(settings, stop)

    uvloop.run(work())


@cli.command()
def migrate() -> None:
    """Bring the database up to date, and make the first signing key."""
    from rota.auth import rotation
    from rota.platform.crypto import Vault
    from rota.platform.migrate import migrate as apply

    settings = _settings()
    url = _owner_url(settings)
    apply(url)
    asyncio.run(rotation.ensure_key(url, Vault(*settings.secret_keys)))
    typer.echo("The database is up to date.")


@agents.command()
def sync(
    folder: Annotated[
        Path | None, typer.Argument(help="Where the files are. Without it: Rota's own catalog.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change.")] = False,
) -> None:
    """Make the catalog what the files in a folder say: all of them, or none if one is wrong."""
    from rota.agents.commands import sync_command

    sync_command(_owner_url(_settings()), folder, dry_run=dry_run)


@keys.command()
def rotate(
    immediately: Annotated[
        bool,
        typer.Option(help="Retire the old keys now: everyone signs in again. For a leaked key."),
    ] = False,
) -> None:
    """Sign with a new key from now on; tokens of older keys stay valid while they last."""
    from rota.auth import rotation
    from rota.platform.crypto import Vault

    settings = _settings()
    overlap_s = 0 if immediately else rotation.default_overlap_s(settings)
    kid = asyncio.run(
        rotation.rotate(_owner_url(settings), Vault(*settings.secret_keys), overlap_s=overlap_s)
    )
    typer.echo(f"Key {kid} signs from now on. Running processes take it up within 2 s.")


@secrets.command("rotate")
def rotate_secrets() -> None:
    """Wrap everything that is sealed with ROTA_SECRET_KEY, so that older keys can go."""
    from rota.secret_rotation import rotate_all

    settings = _settings()
    counts = _with_parts(
        settings, lambda parts: rotate_all(parts.db, _owner_url(settings), parts.vault)
    )
    for name, (wrapped, broken) in counts.items():
        typer.echo(f"{name}: {wrapped} wrapped anew, {broken} that open with no key")
    if any(broken for _, broken in counts.values()):
        typer.secho("Keep the older keys: some values still need one that is not set.", err=True)
        raise typer.Exit(1)


@companies.command("create-company")
def create_company(
    name: str,
    owner: Annotated[str, typer.Option(help="The owner's user id (user_…), from GET /api/me.")],
    tier: Annotated[str, typer.Option(help="Its tier.")] = "basic",
    seats: Annotated[int | None, typer.Option(min=1, help="How many members it may have.")] = None,
) -> None:
    """Make a company account."""
    from rota.accounts import service as accounts
    from rota.platform import ids

    settings = _settings()
    _check_tier(settings, tier)
    account_id = _with_parts(
        settings,
        lambda parts: accounts.create_company(
            parts.db, name, _id("user", owner), tier=tier.lower(), seats=seats
        ),
    )
    typer.echo(ids.to_wire("acct", account_id))


@companies.command("put-member")
def put_member(account: str, user: str, role: str = "member") -> None:
    """Add a member to a company, or change a member's role (owner, admin, member)."""
    from rota.accounts import service as accounts

    if role not in ("owner", "admin", "member"):
        raise typer.BadParameter("the role is owner, admin or member")
    _with_parts(
        _settings(),
        lambda parts: accounts.put_member(
            parts.db, _id("acct", account), _id("user", user), cast(Any, role)
        ),
    )
    typer.echo(f"{user} is {role} of {account}.")


@companies.command("set-tier")
def set_tier(account: str, tier: str) -> None:
    """Give an account another tier by hand."""
    from rota.accounts import service as accounts

    settings = _settings()
    _check_tier(settings, tier)
    _with_parts(
        settings, lambda parts: accounts.set_tier(parts.db, _id("acct", account), tier.lower())
    )
    typer.echo(f"{account} is {tier.upper()}.")


@ledger.command()
def verify(
    account: Annotated[str | None, typer.Option(help="Only this account (acct_…).")] = None,
) -> None:
    """Check that balances, entries, holds, tasks, steps and usage agree; 1 if they do not."""
    from rota.credits.commands import verify_command

    account_id = _id("acct", account) if account is not None else None
    _with_parts(_settings(), lambda parts: verify_command(parts.db, account_id))


@payments.command()
def setup() -> None:
    """Have the payment processor sell this variant's plans, at their prices."""
    from rota.payments.processor import processor_of
    from rota.plans.commands import setup_command
    from rota.plans.tiers import products
    from rota.variants import VARIANTS

    settings = _settings()
    variant = VARIANTS[settings.variant]
    sold = products(variant.tiers, variant.pass_price_cents)

    async def offer() -> None:
        processor = processor_of(settings)
        try:
            await setup_command(processor, sold, settings.public_url)
        finally:
            await processor.close()

    _finish(offer())


@payments.command()
def reconcile(
    since: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Payments from this day on; 30 days without it."),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Enter here what the processor has.")
    ] = False,
) -> None:
    """Compare the processor's books with ours; 1 if they differ."""
    from rota.plans.commands import reconcile_command

    start = since.replace(tzinfo=UTC) if since else datetime.now(UTC) - timedelta(days=30)
    _with_parts(
        _settings(), lambda parts: reconcile_command(parts.reconciliation, start, apply=apply)
    )


@bench.command()
def seed(
    tasks: Annotated[int, typer.Option(min=2, help="How many tasks to make.")],
    accounts: Annotated[
        int | None, typer.Option(help="Over how many accounts; one for each 1,000 tasks.")
    ] = None,
    largest: Annotated[
        int | None, typer.Option(help="How many of them in one account; a tenth.")
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Although the database has tasks already.")
    ] = False,
) -> None:
    """Fill a migrated database with made-up accounts and tasks. Never in production."""
    from rota.dev.seed import seed_command

    settings = _settings()
    if settings.env == "production":
        typer.secho("ROTA_ENV is production: made-up tasks have no place there.", err=True)
        raise typer.Exit(1)
    seed_command(_owner_url(settings), tasks, accounts, largest, append=append)


@cli.command()
def openapi(
    variant: Annotated[str, typer.Option(help="a or b")] = "a",
    output: Annotated[Path | None, typer.Option(help="Write here instead of printing.")] = None,
) -> None:
    """Print the OpenAPI description."""
    from rota.app import create_app

    settings = Settings(variant=cast(Literal["a", "b"], variant))
    text = json.dumps(create_app(settings).openapi(), indent=2, ensure_ascii=False) + "\n"
    if output:
        output.write_text(text)
    else:
        sys.stdout.write(text)


def _id(prefix: str, text: str) -> Any:
    from rota.platform import ids

    found = ids.from_wire(prefix, text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no id of the form {prefix}_…")
    return found


def _check_tier(settings: Settings, tier: str) -> None:
    from rota.variants import VARIANTS

    names = [t.name for t in VARIANTS[settings.variant].tiers]
    if tier.lower() not in names:
        raise typer.BadParameter(f"the tiers of this variant are {', '.join(names)}")


def _with_parts(settings: Settings, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Runs `work` with the parts of the service, on one database connection."""
    from rota.composition import Composition

    async def run() -> Any:
        async with Composition(settings, pool_size=1) as parts:
            return await work(parts)

    return _finish(run())


def _finish(work: Coroutine[Any, Any, Any]) -> Any:
    import asyncpg

    from rota.platform.errors import ApiError

    try:
        return asyncio.run(work)
    except ApiError as error:
        typer.secho(error.message, err=True)
        raise typer.Exit(1) from None
    except (OSError, asyncpg.PostgresError) as error:
        typer.secho(f"The database does not answer ({error}). Check ROTA_DATABASE_URL.", err=True)
        raise typer.Exit(1) from None


def main() -> None:
    cli()


if __name__ == "__main__":
    main()
