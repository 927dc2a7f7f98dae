"""`rota admin keys …`: API keys of any account, without a session."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.key_table import print_keys
from rota.cli.output import print_json, print_note, print_text
from rota.cli.runtime import Json, act_as_operator, operator_settings, parse_id, with_composition

if TYPE_CHECKING:
    from rota.platform.settings import Settings

commands = typer.Typer(
    no_args_is_help=True,
    help="Create the first API key of an account, and revoke keys.",
    callback=act_as_operator,
)


@commands.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    account: Annotated[
        str | None,
        typer.Option(
            help="The account of the key (acct_…). Default: an account of the operator, which is"
            " created if it does not exist."
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "What the key can do. Can be repeated. Default: all except tasks:approve, "
                "audit:read and webhooks:write. The default includes mcp:write, which accepts "
                "changed tools, and mcp:invoke, which calls tools without a review."
            )
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=36_500, help="How many days it works. Default: no expiry."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create an API key and print its secret. The secret is not shown again.

    On a new deployment, this is the way in before the first user has signed in. Users who have
    signed in create keys with rota keys create.

    Example: rota admin keys create "First steps" --days 7
    """
    from rota.auth.caller import ALL_SCOPES
    from rota.platform import ids

    if unknown := set(scope or ()) - set(ALL_SCOPES):
        raise typer.BadParameter(
            f"{', '.join(sorted(unknown))}: unknown. The scopes are: {', '.join(ALL_SCOPES)}."
        )
    account_id = None if account is None else parse_id("acct", account)
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    settings = operator_settings()
    found, created = with_composition(
        settings, lambda parts: parts.operator_keys.create(name, scope, expires_at, account_id)
    )
    owner = ids.to_wire("acct", found)
    assert created.secret is not None
    if as_json:
        print_json({"account": owner, "key": created.key, "secret": created.secret})
        return
    print_note(
        f"{created.key.id} of {owner} can: {', '.join(created.key.scopes)}. Use it with"
        f" {_url(settings)} and ROTA_API_KEY set to:"
    )
    print_text(created.secret)


def _url(settings: "Settings") -> str:
    is_known = "public_url" in settings.model_fields_set
    return f"ROTA_URL={settings.public_url}" if is_known else "ROTA_URL"


@commands.command("list")
def list_keys(
    account: Annotated[
        str | None, typer.Option(help="The account (acct_…). Default: the account of the operator.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the API keys of an account, without their secrets."""
    account_id = None if account is None else parse_id("acct", account)
    keys = with_composition(operator_settings(), lambda parts: parts.operator_keys.all(account_id))
    print_keys(keys, as_json=as_json)


@commands.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The ID of the key (key_…).")],
    as_json: Json = False,
) -> None:
    """Revoke an API key of any account. It stops working within a second.

    Example: rota admin keys revoke key_…
    """
    from rota.platform import ids

    key_id = parse_id("key", key)
    account_id = with_composition(
        operator_settings(), lambda parts: parts.operator_keys.revoke(key_id)
    )
    if as_json:
        print_json({"revoked": True, "id": key, "account": ids.to_wire("acct", account_id)})
    else:
        print_text(f"{key} of {ids.to_wire('acct', account_id)} is revoked.")
