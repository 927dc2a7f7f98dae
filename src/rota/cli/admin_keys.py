"""`rota admin keys …`: the first API key of an account."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from rota.cli.runtime import operator_settings, parse_id, with_composition

commands = typer.Typer(no_args_is_help=True, help="Create the first API key of an account.")


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
        typer.Option(help="What the key can do. Repeat it. Default: all but tasks:approve."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="How many days it works. Default: always.")
    ] = None,
) -> None:
    """Create an API key and print its secret. The secret is not shown again.

    On a new deployment, this is the way in before anybody has signed in. Users who have signed in
    create keys with rota keys create.

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
    assert created.secret is not None
    typer.echo(
        f"{created.key.id} of {ids.to_wire('acct', found)} can: {', '.join(created.key.scopes)}."
        f" Use it with ROTA_URL={settings.public_url} and ROTA_API_KEY set to:",
        err=True,
    )
    typer.echo(created.secret)
