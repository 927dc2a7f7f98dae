"""`rota mcp`: the MCP server of a deployment, for desktop programs that start a command."""

import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.exits import fail
from rota.cli.output import print_note
from rota.cli.session import Session

if TYPE_CHECKING:
    from rota_sdk.models import Scope

PATH = "/mcp"
# What the tools need. A program must not approve.
SCOPES: tuple["Scope", ...] = ("tasks:read", "tasks:write", "agents:read")


def mcp(
    session: Session,
    new_key: Annotated[
        bool,
        typer.Option(
            "--new-key", help="Create another API key for this profile, if its key was revoked."
        ),
    ] = False,
) -> None:
    """Serve the MCP tools of the service on standard input and output.

    Programs such as desktop assistants start this command. It uses ROTA_URL and ROTA_API_KEY, or
    the profile of `rota login`: sessions can approve, so it creates an API key that cannot, once,
    and stores it in the profile.

    Example: rota mcp --profile work
    """
    from rota.cli.mcp_proxy import Refused, serve

    target = session.target
    token, headers = target.token or "", {}
    own_key = not token.startswith("rota_")
    if own_key:
        token = _key_of_profile(session, new_key)
    elif target.account is not None:
        headers["X-Service-Account"] = target.account
    headers["Authorization"] = f"Bearer {token}"
    try:
        serve(target.url + PATH, headers, print_note)
    except Refused as refused:
        hint = " To create another key: rota mcp --new-key" if own_key else ""
        fail(f"{refused}{hint}")


def _key_of_profile(session: Session, new_key: bool) -> str:
    """The secret of the key that the profile has for the account. It is created once."""
    from rota.cli import profiles
    from rota.cli.connection import stored_profiles

    target = session.target
    if target.profile is None:
        fail(
            "ROTA_API_KEY must be an API key, because a session can approve. See: rota keys create"
        )
    account, name = target.account or "personal", target.profile
    found = stored_profiles().named[name].mcp_keys.get(account)
    if found is not None and not new_key:
        return found["secret"]
    answer = session.client.keys.create(
        name=f"rota mcp on {platform.node()}"[:100], scopes=list(SCOPES)
    )
    if answer.secret is None:
        fail(f"The response was lost. Delete {answer.key.id} and run the command again.")
    secret = answer.secret
    with profiles.changing() as stored:
        profile = stored[0].named[name]
        keys = {**profile.mcp_keys, account: {"id": answer.key.id, "secret": secret}}
        stored[0] = stored[0].put(name, replace(profile, mcp_keys=keys))
    print_note(
        f"Created the API key {answer.key.id}. To revoke it: rota keys delete {answer.key.id}"
    )
    return secret
