"""`rota admin …`: the commands an operator runs against an installation."""

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from rota.cli import admin_agents, admin_keys
from rota.cli.accounts import accounts, companies, money
from rota.cli.audit import audit
from rota.cli.doctor import doctor
from rota.cli.exits import ExitCode
from rota.cli.output import print_json
from rota.cli.restore import restore
from rota.cli.runtime import (
    Json,
    act_as_operator,
    exit_on_error,
    fail,
    named_problems,
    operator_settings,
    owner_url,
    parse_id,
    run_or_exit,
    with_composition,
)

commands = typer.Typer(
    no_args_is_help=True, help="Commands for operators.", callback=act_as_operator
)


def _group(name: str, description: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, help=description, callback=act_as_operator)
    commands.add_typer(group, name=name)
    return group


commands.add_typer(admin_agents.commands, name="agents")
commands.add_typer(companies, name="companies")
commands.add_typer(accounts, name="accounts")
commands.add_typer(money, name="credits")
commands.add_typer(audit, name="audit")
commands.add_typer(restore, name="restore")
signing_keys = _group("signing-keys", "Rotate the keys that sign session tokens.")
secrets = _group("secrets", "Rotate the key that encrypts stored secrets.")
commands.add_typer(admin_keys.commands, name="keys")
ledger = _group("ledger", "Check the ledger.")
payments = _group("payments", "Set up Stripe and compare its records with the ledger.")
outbox = _group("outbox", "List instructions to the workers, and retry those that failed.")


commands.command()(doctor)


@commands.command()
def migrate() -> None:
    """Update the database schema and create the first signing key.

    Run it once per release, before the new processes start.
    """
    from rota.auth import rotation
    from rota.platform.crypto import Vault
    from rota.platform.migrate import migrate as apply

    settings = operator_settings()
    url = owner_url(settings)
    with exit_on_error():
        apply(url)
    run_or_exit(rotation.ensure_key(url, Vault(*settings.secret_keys)))
    typer.echo("The database is up to date.")


@signing_keys.command("rotate")
def rotate_signing_keys(
    immediately: Annotated[
        bool,
        typer.Option(
            "--immediately",
            help="Stop accepting older keys now: all users must sign in again."
            " Use this if a key has leaked.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Create a new key and sign session tokens with it.

    Tokens that an older key signed stay valid until they expire.
    """
    from rota.auth import rotation
    from rota.platform.crypto import Vault

    settings = operator_settings()
    overlap_s = 0 if immediately else rotation.default_overlap_s(settings)
    kid = run_or_exit(
        rotation.rotate(owner_url(settings), Vault(*settings.secret_keys), overlap_s=overlap_s)
    )
    if as_json:
        print_json({"kid": kid})
        return
    typer.echo(f"Key {kid} now signs session tokens. Running processes use it within 2 s.")


@secrets.command("rotate")
def rotate_secrets(as_json: Json = False) -> None:
    """Encrypt all stored secrets with the current ROTA_SECRET_KEY.

    Afterwards you can remove the older keys from the settings.
    """
    from rota.secret_rotation import rotate_all

    settings = operator_settings()
    counts = with_composition(
        settings, lambda parts: rotate_all(parts.db, owner_url(settings), parts.vault)
    )
    if as_json:
        print_json(
            {
                name: {"encrypted": rotated, "unreadable": unreadable}
                for name, (rotated, unreadable) in counts.items()
            }
        )
    for name, (rotated, unreadable) in () if as_json else counts.items():
        typer.echo(f"{name}: {rotated} encrypted with the current key, {unreadable} unreadable")
    if any(unreadable for _, unreadable in counts.values()):
        fail(
            "No configured key can decrypt some values. Keep the older keys, and add the missing"
            " one to ROTA_SECRET_KEYS_OLD."
        )


@ledger.command()
def verify(
    account: Annotated[str | None, typer.Option(help="Check only this account (acct_…).")] = None,
    as_json: Json = False,
) -> None:
    """Check the ledger: balances, entries, holds, tasks, steps and usage must agree.

    The command only reads. It exits with 1 if it finds a difference, and with 8 if it cannot use
    the database.
    """
    from rota.credits.commands import verify_command

    account_id = parse_id("acct", account) if account is not None else None
    with_composition(
        operator_settings(),
        lambda parts: verify_command(parts.db, account_id, as_json=as_json),
        without_database=ExitCode.DATABASE_UNAVAILABLE,
    )


@payments.command()
def setup() -> None:
    """Create this variant's products and prices in Stripe."""
    from rota.payments.processor import processor_of
    from rota.plans.commands import setup_command
    from rota.plans.tiers import products
    from rota.variants import VARIANTS

    settings = operator_settings()
    if settings.env == "production" and not settings.public_url.startswith("https://"):
        fail("ROTA_PUBLIC_URL must start with https:// in production: Stripe sends webhooks there.")
    variant = VARIANTS[settings.variant]
    sold = products(variant.tiers, variant.pass_price_cents)

    async def offer() -> None:
        processor = processor_of(settings)
        try:
            await setup_command(processor, sold, settings.public_url)
        finally:
            await processor.close()

    run_or_exit(offer())


@payments.command()
def reconcile(
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], help="The first day to compare (UTC). Default: 30 days ago."
        ),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Correct the ledger and subscriptions from Stripe.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare payments and subscriptions with Stripe.

    The command exits with 1 if differences remain, and with 8 if it cannot use the database.

    Example: rota admin payments reconcile --since 2026-11-01
    """
    from rota.plans.commands import reconcile_command

    start = since.replace(tzinfo=UTC) if since else datetime.now(UTC) - timedelta(days=30)
    with_composition(
        operator_settings(),
        lambda parts: reconcile_command(parts.reconciliation, start, apply=apply, as_json=as_json),
        without_database=ExitCode.DATABASE_UNAVAILABLE,
    )


@outbox.command("list")
def list_outbox(
    dead: Annotated[
        bool, typer.Option("--dead", help="Only dead letters: what failed and is not retried.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="The maximum number of rows.")] = 100,
    as_json: Json = False,
) -> None:
    """List the oldest instructions that are waiting, with the error of the last attempt.

    Example: rota admin outbox list --dead
    """
    from rota.events.commands import list_command

    with_composition(
        operator_settings(), lambda parts: list_command(parts.db, dead, limit, as_json=as_json)
    )


@outbox.command("retry")
def retry_outbox(
    instruction: Annotated[
        int | None, typer.Argument(metavar="ID", help="The dead letter's ID in the list.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Retry every dead letter.")] = False,
    as_json: Json = False,
) -> None:
    """Retry one dead letter, or all of them. A worker picks them up within seconds.

    Example: rota admin outbox retry --all
    """
    from rota.events.commands import retry_command

    if (instruction is None) != everything:
        raise typer.BadParameter("Use either an ID or --all.")
    with_composition(
        operator_settings(), lambda parts: retry_command(parts.db, instruction, as_json=as_json)
    )


# A list of numbers, literals and strings, as json.dumps indents it.
_PLAIN = r'(?:[^\s\[\]{}",]+|"[^"\n]*")'
_PLAIN_LIST = re.compile(rf"\[\n +({_PLAIN}(?:,\n +{_PLAIN})*)\n +\]")


def _on_one_line(found: re.Match[str]) -> str:
    line = "[" + re.sub(r",\n +", ", ", found[1]) + "]"
    return line if len(line) <= 80 else found[0]


@commands.command()
def openapi(
    variant: Annotated[Literal["a", "b"], typer.Option(help="The variant to describe.")] = "a",
    output: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> None:
    """Print the OpenAPI description of the API."""
    from rota.app import create_app
    from rota.platform.settings import OperatorSettings

    settings = named_problems(lambda: OperatorSettings(variant=variant))
    description = create_app(settings).openapi()
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    # As formatters do it: a list of plain values that fits into a line is one line.
    text = _PLAIN_LIST.sub(_on_one_line, text)
    if output:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            fail(f"Cannot write {output}: {error.strerror}.")
    else:
        sys.stdout.write(text)


@commands.command()
def seed(
    tasks: Annotated[int, typer.Option(min=2, help="The number of tasks.")],
    accounts: Annotated[
        int | None,
        typer.Option(help="The number of accounts. Default: one for every 1,000 tasks."),
    ] = None,
    largest: Annotated[
        int | None,
        typer.Option(
            help="The number of tasks in the largest account. Default: a tenth of all tasks."
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Allow a database that already has tasks.")
    ] = False,
) -> None:
    """Fill a migrated database with generated accounts and tasks, for load tests.

    The command refuses to run if ROTA_ENV is production.

    Example: rota admin seed --tasks 1000000
    """
    from rota.dev.seed.command import seed_command

    settings = operator_settings()
    if settings.env == "production":
        fail("ROTA_ENV is production. Generated tasks must not be added to a production database.")
    seed_command(owner_url(settings), tasks, accounts, largest, append=append)
