"""Runs the examples in docs/tool-servers.md in order."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

from tests.mcp.peers import Peer, definition
from tests.service import Person

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "tool-servers.md"


async def shell(text: str, variables: dict[str, str]) -> list[dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        "bash", "-e", "-c", text, env=os.environ | variables, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, text
    decoder, rest, found = json.JSONDecoder(), output.decode(), []
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].lstrip()
    return found


async def test_every_example_works(person: Person, peer: Peer) -> None:
    connect, tools, invoke, ping, checks, change, accept, disconnect = re.findall(
        r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL
    )
    variables = {
        "BASE": f"http://127.0.0.1:{person.service.settings.port}",
        "TOKEN": person.token,
        "SERVER_URL": peer.url,
    }
    [connected] = await shell(connect, variables)
    variables["SERVER"] = connected["server"]["id"]
    [listed] = await shell(tools, variables)
    assert listed["tools"] == connected["tools"]
    [invoked] = await shell(invoke, variables)
    assert invoked["result"]["structuredContent"] == {"sum": 5}
    [pinged] = await shell(ping, variables)
    assert pinged["ok"]
    [past] = await shell(checks, variables)
    assert [check["status"] for check in past["checks"]] == ["CONNECTED"]
    [changed] = await shell(change, variables)
    assert changed["server"]["allowedTools"] == ["add", "note"]
    peer.tools["add"] = definition("add", "Adds, and more.")
    [pinged] = await shell(ping, variables)
    assert pinged["status"] == "CHANGED"
    [listed] = await shell(tools, variables)
    variables["HASH"] = listed["tools"][0]["hash"]
    [accepted] = await shell(accept, variables)
    assert accepted["server"]["status"] == "CONNECTED"
    assert accepted["tools"][0]["description"] == "Adds, and more."
    [gone] = await shell(disconnect, variables)
    assert gone == {"deleted": True, "id": variables["SERVER"]}


def test_every_link_has_a_target() -> None:
    for page in (PAGE, DOCS / "security.md"):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if not target.startswith("https://"):
                assert (DOCS / target).resolve().exists(), (page, target)
