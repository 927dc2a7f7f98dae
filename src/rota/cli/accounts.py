"""`rota admin companies …` and `rota admin accounts …`."""

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
    typer.echo(f"{user} is no longer a member of {account}.")


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


def _check_tier(settings: "Settings", tier: str) -> str:
    from rota.variants import VARIANTS

    names = [known.name for known in VARIANTS[settings.variant].tiers]
    if tier.lower() not in names:
        raise typer.BadParameter(f"{tier!r} is not a tier. Use one of: {', '.join(names)}.")
    return tier.lower()
