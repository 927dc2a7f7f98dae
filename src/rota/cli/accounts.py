"""`rota admin companies …`, `rota admin accounts …` and `rota admin credits …`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rota.cli.output import print_json
from rota.cli.runtime import Json, act_as_operator, operator_settings, parse_id, with_composition

if TYPE_CHECKING:
    from rota.platform.settings import Settings

companies = typer.Typer(
    no_args_is_help=True,
    help="Create companies and manage their members.",
    callback=act_as_operator,
)
accounts = typer.Typer(no_args_is_help=True, help="Manage accounts.", callback=act_as_operator)
money = typer.Typer(no_args_is_help=True, help="Give money to accounts.", callback=act_as_operator)


@companies.command("create")
def create_company(
    name: Annotated[str, typer.Argument(help="The name of the company.")],
    owner: Annotated[
        str, typer.Option(help="The owner's user ID (user_…). GET /api/me returns it.")
    ],
    tier: Annotated[str, typer.Option(help="The tier of the account.")] = "basic",
    seats: Annotated[
        int | None, typer.Option(min=1, help="The maximum number of members. Default: the tier's.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a company account and print its ID.

    Example: rota admin companies create Acme --owner user_… --tier advanced
    """
    from rota.accounts import service
    from rota.platform import ids

    settings = operator_settings()
    owner_id = parse_id("user", owner)
    checked_tier = _check_tier(settings, tier)
    account_id = with_composition(
        settings,
        lambda parts: service.create_company(
            parts.db, name, owner_id, tier=checked_tier, seats=seats
        ),
    )
    account = ids.to_wire("acct", account_id)
    if as_json:
        print_json({"account": account})
    else:
        typer.echo(account)


@companies.command("set-member")
def set_member(
    account: Annotated[str, typer.Argument(help="The company's account ID (acct_…).")],
    user: Annotated[str, typer.Argument(help="The user's ID (user_…).")],
    role: Annotated[
        Literal["owner", "admin", "member"] | None,
        typer.Option(help="The role. Default: member for a new member, else unchanged."),
    ] = None,
    approver: Annotated[
        bool | None,
        typer.Option(
            help="Whether a member can approve. Default: no for a new member and for an owner or "
            "admin who becomes one, else unchanged."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a member to a company, or change the role of a member.

    Example: rota admin companies set-member acct_… user_… --role admin
    """
    account_id, user_id = parse_id("acct", account), parse_id("user", user)
    member = with_composition(
        operator_settings(), lambda parts: parts.members.put(account_id, user_id, role, approver)
    )
    if as_json:
        about = {"role": member.role, "approver": member.approver}
        print_json({"account": account, "user": user, **about})
    else:
        typer.echo(f"{user} has the role {member.role} in {account}.")


@companies.command("remove-member")
def remove_member(
    account: Annotated[str, typer.Argument(help="The company's account ID (acct_…).")],
    user: Annotated[str, typer.Argument(help="The user's ID (user_…).")],
) -> None:
    """Remove a member from a company, with everything that acts for the member.

    Example: rota admin companies remove-member acct_… user_…
    """
    account_id, user_id = parse_id("acct", account), parse_id("user", user)
    with_composition(
        operator_settings(), lambda parts: parts.members.remove(account_id, user_id, by=None)
    )
    typer.echo(f"{user} was removed from {account}.")


@accounts.command("set-tier")
def set_tier(
    account: Annotated[str, typer.Argument(help="The account's ID (acct_…).")],
    tier: Annotated[str, typer.Argument(help="The new tier.")],
    as_json: Json = False,
) -> None:
    """Set the tier of an account.

    Example: rota admin accounts set-tier acct_… advanced
    """
    from rota.accounts import service

    settings = operator_settings()
    account_id = parse_id("acct", account)
    checked_tier = _check_tier(settings, tier)
    with_composition(settings, lambda parts: service.set_tier(parts.db, account_id, checked_tier))
    if as_json:
        print_json({"account": account, "tier": checked_tier.upper()})
    else:
        typer.echo(f"{account} has the tier {checked_tier.upper()}.")


@accounts.command("list")
def list_accounts(
    limit: Annotated[int, typer.Option(min=1, help="The maximum number of rows.")] = 100,
    name: Annotated[
        str, typer.Option(help="Only accounts with this text in their name, in any case.")
    ] = "",
) -> None:
    """List accounts, the oldest first.

    Example: rota admin accounts list --name fernhill
    """
    from rota.data.commands import list_command

    with_composition(operator_settings(), lambda parts: list_command(parts.db, limit, name))


@accounts.command("show")
def show_account(
    account: Annotated[str, typer.Argument(help="The account's ID (acct_…).")],
) -> None:
    """Show an account, and the progress of its erasure.

    Example: rota admin accounts show acct_…
    """
    from rota.data.commands import show_command

    account_id = parse_id("acct", account)
    with_composition(
        operator_settings(), lambda parts: show_command(parts.db, parts.erasures, account_id)
    )


@accounts.command("end-sessions")
def end_sessions(
    account: Annotated[str, typer.Argument(help="The ID of a personal account (acct_…).")],
    as_json: Json = False,
) -> None:
    """End all sessions of a user. The user has to sign in again. API keys keep working.

    Example: rota admin accounts end-sessions acct_…
    """
    user_id = parse_id("acct", account)
    ended = with_composition(operator_settings(), lambda parts: parts.sessions.end_all(user_id))
    if as_json:
        print_json({"account": account, "ended": ended})
    else:
        typer.echo(f"Sessions of {account} that ended: {ended}.")


@accounts.command("export")
def export_account(
    account: Annotated[str, typer.Argument(help="The account's ID (acct_…).")],
    output: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> None:
    """Write everything that an account owns as lines of JSON.

    Example: rota admin accounts export acct_… --output account.ndjson
    """
    from rota.data.commands import export_command

    account_id = parse_id("acct", account)
    with_composition(
        operator_settings(), lambda parts: export_command(parts.exports, account_id, output)
    )


@accounts.command("erase")
def erase_account(
    account: Annotated[str, typer.Argument(help="The account's ID (acct_…).")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase an account permanently. All its activity stops immediately, and workers erase its data.

    Example: rota admin accounts erase acct_…
    """
    account_id = parse_id("acct", account)
    if not yes:
        typer.confirm(f"Erase {account} for good?", abort=True)
    erasure = with_composition(operator_settings(), lambda parts: parts.erasures.erase(account_id))
    done = "is erased" if erasure.finished_at else "is closed. Workers are erasing its data"
    typer.echo(f"{account} {done}.")


@money.command("grant")
def grant_credits(
    account: Annotated[str, typer.Argument(help="The account's ID (acct_…).")],
    amount: Annotated[str, typer.Argument(help="The amount in dollars, such as 5 or 12.50.")],
    reason: Annotated[str, typer.Option(help="Why. It is in the audit trail of the account.")],
    key: Annotated[
        str | None,
        typer.Option(help="Makes the command safe to repeat: a key adds money once."),
    ] = None,
) -> None:
    """Add money to an account. It is available like a top-up.

    Example: rota admin credits grant acct_… 5 --reason "Outage of 3 May" --key outage-0503
    """
    from decimal import Decimal, InvalidOperation
    from uuid import uuid4

    from rota.data.commands import grant_command

    account_id = parse_id("acct", account)
    try:
        cents = Decimal(amount) * 100
        whole = cents.is_finite() and cents == int(cents)
    except InvalidOperation:
        whole = False
    if not whole or not 0 < cents <= 100_000_000:
        raise typer.BadParameter(f"{amount!r} is not an amount. Write dollars, such as 5 or 12.50.")
    if not reason.strip():
        raise typer.BadParameter("--reason must not be empty.")
    added = with_composition(
        operator_settings(),
        lambda parts: grant_command(parts.db, account_id, int(cents), reason, key or uuid4().hex),
    )
    if added:
        typer.echo(f"Added ${cents / 100:.2f} to {account}.")
    else:
        typer.echo(f"Nothing was added: the key {key} was used before.")


def _check_tier(settings: "Settings", tier: str) -> str:
    from rota.variants import VARIANTS

    names = [known.name for known in VARIANTS[settings.variant].tiers]
    if tier.lower() not in names:
        raise typer.BadParameter(f"{tier!r} is not a tier. Use one of: {', '.join(names)}.")
    return tier.lower()
