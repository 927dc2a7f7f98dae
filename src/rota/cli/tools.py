"""`rota tools …`: tool servers and their tools."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.exits import ExitCode, fail
from rota.cli.output import print_json, print_note, print_table, print_text
from rota.cli.session import Session, client_command, read_json
from rota.cli.text import counted, moment

if TYPE_CHECKING:
    from rota_sdk.models import Tool, ToolServer

commands = typer.Typer(no_args_is_help=True, help="Connect tool servers and call their tools.")

Server = Annotated[
    str, typer.Argument(metavar="SERVER", help="The name or the ID (mcp_…) of a server.")
]


@client_command(commands, "list")
def list_servers(session: Session) -> None:
    """List the tool servers of the account."""
    servers = list(session.client.tool_servers.list())
    if session.as_json:
        print_json({"servers": servers, "total": len(servers)})
        return
    rows = [
        (
            each.name,
            each.status,
            each.tool_count,
            each.url,
            moment(each.last_checked_at),
            each.last_error,
        )
        for each in servers
    ]
    columns = ("Name", "Status", "Tools", "URL", "Checked", "Error")
    print_table(columns, rows, "No tool server is connected.")


@client_command(commands)
def show(session: Session, server: Server) -> None:
    """List the tools of a server."""
    found = find_server(session, server)
    tools = list(session.client.tool_servers.tools(found))
    if session.as_json:
        print_json({"server": found, "tools": tools})
        return
    rows = [
        (
            each.name,
            "yes" if each.allowed else "no",
            "reads" if (each.annotations or {}).get("readOnlyHint") is True else "writes",
            _state(each),
            each.description,
        )
        for each in tools
    ]
    columns = ("Tool", "Allowed", "Effect", "Definition", "What it does")
    print_table(columns, rows, "It has no tools.")
    if not all(each.accepted for each in tools):
        print_note(_how_to_accept(found))


def _state(tool: "Tool") -> str:
    if tool.changed:
        return "changed"
    return "accepted" if tool.accepted else "not accepted"


def _how_to_accept(server: "ToolServer") -> str:
    return f"To see what is new or has changed, and accept it: rota tools accept {server.name}"


@client_command(commands)
def accept(
    session: Session,
    server: Server,
    tool: Annotated[
        list[str] | None, typer.Argument(help="Only these tools. Without names, all that wait.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Accept tools that are new or have changed. Agents cannot use them until then.

    It shows what changed, asks, and accepts exactly the definitions that it has shown.

    Example: rota tools accept helpdesk
    """
    found = find_server(session, server)
    tools = list(session.client.tool_servers.tools(found))
    names = {each.name for each in tools}
    if unknown := [name for name in tool or () if name not in names]:
        fail(f"{found.name} has no tool {unknown[0]!r}. It has: {', '.join(sorted(names))}.")
    waiting = [each for each in tools if not each.accepted and (not tool or each.name in tool)]
    if not waiting:
        if session.as_json:
            print_json({"server": found, "tools": tools})
        else:
            print_text(f"Every tool of {found.name} is accepted.")
        return
    if not yes:
        _ask(waiting)
    answer = session.client.tool_servers.accept(found, tools=waiting)
    if session.as_json:
        print_json(answer)
    else:
        print_text(f"Accepted: {', '.join(each.name for each in waiting)}.")


def _ask(waiting: "list[Tool]") -> None:
    """Shows what would be accepted, and ends the command if the answer is no."""
    for each in waiting:
        print_note(f"{each.name}: {_state(each)}")
        for change in each.difference:
            if change.accepted is not None:
                print_note(f"  - {change.field}: {json.dumps(change.accepted, ensure_ascii=False)}")
            print_note(f"  + {change.field}: {json.dumps(change.live, ensure_ascii=False)}")
    if not sys.stdin.isatty():
        fail("To accept without confirmation, add --yes.", ExitCode.USAGE)
    typer.confirm(f"Accept {counted(len(waiting), 'definition')}?", abort=True, err=True)


@client_command(commands)
def connect(
    session: Session,
    name: Annotated[str, typer.Argument(help="A name for the server. Agents use it.")],
    url: Annotated[str, typer.Argument(help="The URL of its MCP endpoint.")],
    token: Annotated[
        bool,
        typer.Option("--token", help="Read a bearer token from the terminal or standard input."),
    ] = False,
    tool: Annotated[
        list[str] | None, typer.Option(help="Allow only this tool. Can be repeated.")
    ] = None,
) -> None:
    """Connect a tool server (MCP).

    Example: rota tools connect helpdesk https://tools.example.com/mcp --token
    """
    secret = _secret() if token else None
    answer = session.client.tool_servers.connect(
        name=name,
        url=url,
        auth={"type": "bearer", "token": secret} if secret else None,
        allowed_tools=tool or None,
    )
    if session.as_json:
        print_json(answer)
    else:
        tools = counted(len(answer.tools), "tool")
        print_text(f"{answer.server.name} is {answer.server.status}: {tools}.")


def _secret() -> str:
    # Not an argument, which other users of the machine can see.
    entered = (
        typer.prompt("Token", hide_input=True, err=True)
        if sys.stdin.isatty()
        else sys.stdin.readline()
    )
    return str(entered).strip() or fail("The token is empty.", ExitCode.USAGE)


@client_command(commands)
def ping(session: Session, server: Server) -> None:
    """Check whether a server responds. Exits with 1 if it does not."""
    answer = session.client.tool_servers.ping(find_server(session, server))
    if session.as_json:
        print_json(answer)
    else:
        print_text(f"{answer.server.name} is {answer.status} ({answer.latency_ms:.0f} ms).")
    if answer.status == "CHANGED":
        print_note(_how_to_accept(answer.server))
    if not answer.ok:
        raise typer.Exit(ExitCode.ERROR)


@client_command(commands)
def call(
    session: Session,
    server: Server,
    tool: Annotated[str, typer.Argument(help="The name of the tool.")],
    arguments: Annotated[
        str | None, typer.Option(help="The arguments: a JSON object, @FILE or -.")
    ] = None,
) -> None:
    """Call a tool, and print what it returns. Exits with 1 if the tool reports an error.

    Example: rota tools call helpdesk find_ticket --arguments '{"number": 7}'
    """
    given = read_json(arguments, "--arguments")
    if given is not None and not isinstance(given, dict):
        fail("--arguments must be a JSON object.", ExitCode.USAGE)
    answer = session.client.tool_servers.invoke(
        find_server(session, server), tool=tool, arguments=given
    )
    result = answer.result
    if session.as_json:
        print_json(answer)
    elif result.structured_content is not None:
        print_json(result.structured_content)
    else:
        for part in result.content:
            text = part.get("text")
            print_text(text if isinstance(text, str) else f"[{part.get('type', 'content')}]")
    if result.is_error:
        print_note("The tool reports an error.")
        raise typer.Exit(ExitCode.ERROR)


@client_command(commands)
def disconnect(session: Session, server: Server) -> None:
    """Remove a tool server from the account."""
    found = find_server(session, server)
    session.client.tool_servers.disconnect(found)
    if session.as_json:
        print_json({"deleted": True, "id": found.id})
    else:
        print_text(f"{found.name} is disconnected.")


def find_server(session: Session, wanted: str) -> "ToolServer":
    """The server with this name or ID."""
    servers = list(session.client.tool_servers.list())
    found = next((each for each in servers if wanted in (each.id, each.name)), None)
    if found is None:
        names = ", ".join(each.name for each in servers) or "none"
        fail(f"No tool server is called {wanted!r}. Connected: {names}.")
    return found
