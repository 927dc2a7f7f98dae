"""Calls that a server answers with a request for input or with a state, and its refusals."""

import itertools
from typing import Any
from uuid import uuid4

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from rota.mcp.errors import InvalidResponse
from rota.mcp.session import Address, Timeouts
from rota.mcp.sessions import Sessions
from rota.platform.egress import Egress, ServerBounds
from tests.mcp import hostile
from tests.mcp.conftest import LOCAL, connect, invoke
from tests.mcp.peers import Peer
from tests.service import Person


def message(response: Any) -> str:
    return str(response.json()["error"]["message"])


async def test_a_call_is_repeated_with_the_state_that_the_server_sends(
    person: Person, peer: Peer
) -> None:
    states = iter(["one", "two"])

    async def answer(_: Any) -> Any:
        state = next(states, None)
        return types.InputRequiredResult(request_state=state) if state else "done"

    peer.answers["note"] = answer
    server = await connect(person, peer.url)
    response = await invoke(person, server, "note", {"text": "x"})
    assert response.status_code == 200, response.text
    assert response.json()["result"]["content"] == [{"type": "text", "text": "done"}]
    assert peer.states == [None, "one", "two"]
    assert peer.calls == [("note", {"text": "x"})] * 3


async def test_a_server_that_always_sends_a_state_does_not_respond_in_time(
    person: Person, peer: Peer
) -> None:
    numbers = itertools.count()

    async def answer(_: Any) -> Any:
        return types.InputRequiredResult(request_state=str(next(numbers)))

    peer.answers["note"] = answer
    server = await connect(person, peer.url)
    response = await invoke(person, server, "note")
    assert response.status_code == 504
    assert "may have taken effect" in message(response)
    assert 1 < len(peer.calls) < 20


@pytest.mark.parametrize("status", [404, 429])
async def test_a_call_that_the_server_has_begun_is_not_made_again(
    person: Person, peer: Peer, status: int
) -> None:
    async def answer(_: Any) -> Any:
        peer.status = status
        return types.InputRequiredResult(request_state="one")

    peer.answers["note"] = answer
    server = await connect(person, peer.url)
    response = await invoke(person, server, "note")
    assert response.status_code == 502
    assert "did not finish the call" in message(response)
    assert "may have taken effect" in message(response)


async def test_a_tool_that_asks_for_input_after_it_has_begun_may_have_run(
    person: Person, peer: Peer
) -> None:
    states = iter(["one"])

    async def answer(_: Any) -> Any:
        if state := next(states, None):
            return types.InputRequiredResult(request_state=state)
        return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})

    peer.answers["note"] = answer
    server = await connect(person, peer.url)
    response = await invoke(person, server, "note")
    assert response.status_code == 502
    assert "The tool asks for input" in message(response)
    assert "may have taken effect" in message(response)
    assert peer.states == [None, "one"]


async def test_a_tool_that_asks_for_input_and_sends_a_state_may_have_run(
    person: Person, peer: Peer
) -> None:
    async def answer(_: Any) -> Any:
        return types.InputRequiredResult(
            input_requests={"roots": types.ListRootsRequest()}, request_state="one"
        )

    peer.answers["note"] = answer
    server = await connect(person, peer.url)
    response = await invoke(person, server, "note")
    assert response.status_code == 502
    assert "may have taken effect" in message(response)
    assert len(peer.calls) == 1


async def test_each_request_of_a_call_is_checked_before_it_is_sent(peer: Peer) -> None:
    async def answer(_: Any) -> Any:
        return types.InputRequiredResult(request_state="one")

    checks = 0

    async def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 2:
            raise LookupError("cancelled")

    peer.answers["note"] = answer
    sessions = Sessions(Egress(allow=LOCAL, bounds=ServerBounds()), Timeouts())
    session = await sessions.open(uuid4(), Address(peer.url, "streamable-http"))
    with pytest.raises(InvalidResponse) as failure:
        await session.call("note", {}, before_send=check)
    assert failure.value.sent
    assert len(peer.calls) == 1
    await session.close()


async def test_a_tool_that_asks_for_input_does_not_run(person: Person, peer: Peer) -> None:
    async def answer(_: Any) -> Any:
        return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})

    peer.answers["note"] = answer
    server = await connect(person, peer.url)
    response = await invoke(person, server, "note")
    assert response.status_code == 502
    assert "The tool asks for input, which Rota cannot give. The tool did not run." in message(
        response
    )
    assert (await person.get("/api/mcp")).json()["servers"] == [server]
    assert len(peer.calls) == 1


@pytest.mark.parametrize(
    "code",
    [
        types.HEADER_MISMATCH,
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        types.UNSUPPORTED_PROTOCOL_VERSION,
    ],
)
async def test_codes_of_the_protocol_mean_that_the_tool_did_not_run(
    person: Person, peer: Peer, code: int
) -> None:
    async def refuse(_: Any) -> Any:
        raise MCPError(code, "Not so")

    peer.answers["note"] = refuse
    server = await connect(person, peer.url)
    assert "The tool did not run." in message(await invoke(person, server, "note"))
    # In earlier versions of the protocol, each server chooses what they mean.
    async with hostile.served(hostile.mcp_handler(call=hostile.reject(code, "Failed"))) as url:
        earlier = await connect(person, url, "earlier")
        assert "may have taken effect" in message(await invoke(person, earlier, "t"))
