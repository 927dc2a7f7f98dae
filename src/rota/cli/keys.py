"""`rota keys …`: API keys of the account. They need a session: `rota login`."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rota.cli.exits import ExitCode, fail
from rota.cli.key_table import print_keys
from rota.cli.output import print_json, print_note, print_text
from rota.cli.session import Session, client_command

if TYPE_CHECKING:
    from rota_sdk.models import Scope

commands = typer.Typer(no_args_is_help=True, help="Create API keys for programs, and revoke them.")


@client_command(commands, "list")
def list_keys(session: Session) -> None:
    """List the API keys of the account, without their secrets."""
    print_keys(list(session.client.keys.list()), as_json=session.as_json)


@client_command(commands)
def create(
    session: Session,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
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
) -> None:
    """Create an API key and print its secret. The secret is not shown again.

    Example: rota keys create "Nightly report" --scope tasks:read --days 90
    """
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    # The service checks the scopes, and names those that it knows.
    scopes = cast("list[Scope]", scope) if scope else None
    answer = session.client.keys.create(name=name, scopes=scopes, expires_at=expires_at)
    if answer.secret is None:
        fail(f"The response was lost. Delete {answer.key.id} and create another key.")
    if session.as_json:
        print_json(answer)
        return
    print_note(f"{answer.key.id} can: {', '.join(answer.key.scopes)}. Store the secret now:")
    print_text(answer.secret)


@client_command(commands)
def delete(
    session: Session, key: Annotated[str, typer.Argument(help="The ID of the key (key_…).")]
) -> None:
    """Revoke an API key. It stops working within a second."""
    if not key.startswith("key_"):
        fail(f"{key!r} is not an ID of the form key_…. See: rota keys list", ExitCode.USAGE)
    session.client.keys.delete(key)
    if session.as_json:
        print_json({"deleted": True, "id": key})
    else:
        print_text(f"{key} is revoked.")
