"""`rota mcp`: the MCP server of a deployment, for desktop programs that start a command."""

from typing import Annotated

import typer

from rota.cli.exits import fail
from rota.cli.output import print_note
from rota.cli.session import Session

PATH = "/mcp"


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
    from rota.cli import mcp_keys
    from rota.cli.mcp_proxy import Refused, serve

    target = session.target
    token, headers = target.token or "", {}
    own_key = not token.startswith("rota_")
    if own_key:
        token = mcp_keys.secret_for(target, new=new_key)
    elif target.account is not None:
        headers["X-Service-Account"] = target.account
    headers["Authorization"] = f"Bearer {token}"
    try:
        serve(target.url + PATH, headers, print_note)
    except Refused as refused:
        hint = " To create another key: rota mcp --new-key" if own_key else ""
        fail(f"{refused}{hint}")
