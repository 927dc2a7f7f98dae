"""Second person: who decides where the calls of a tool go does not approve them."""

from typing import Any

import pytest

from tests.mcp.conftest import connect
from tests.mcp.peers import Peer, definition
from tests.mcp.test_changes import change
from tests.policies.world import Office, OfficeRun, approve, because, review_of
from tests.rules.test_rules import body
from tests.service import Service

TEXT = {"text": {"type": "string"}}
# What an admin changes, and whether that shapes the calls.
CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({"url": "{url}?to=me"}, True),
    ({"headers": {"X-To": "me"}}, True),
    ({"name": "peer"}, True),
    ({"allowedTools": ["send"]}, False),
]


@pytest.mark.parametrize(("changes", "shapes"), CHANGES)
async def test_nobody_approves_calls_of_a_server_that_they_changed(
    board: Service, run: OfficeRun, office: Office, changes: dict[str, Any], *, shapes: bool
) -> None:
    one, other = office.approvers
    third = await office.join(approver=True)
    for admin in (one, other):
        assert (await office.company.change(admin, role="admin")).status_code == 200
    path = f"/api/mcp/mcp_{run.server.id.hex}"
    assert (await office.owner.delete(path)).status_code == 200
    peer = Peer()
    peer.tools = {"send": definition("send", "Sends.", properties=TEXT)}
    async with peer.serve():
        server = await connect(
            office.owner, peer.url, name="first" if "name" in changes else "peer"
        )
        sent = {
            name: value.format(url=peer.url) if name == "url" else value
            for name, value in changes.items()
        }
        assert (await change(one, server, sent)).status_code == 200
        # A later change by somebody else does not undo it.
        assert (await change(other, server, {"auth": {"type": "bearer", "token": "t"}})).is_success
        wanted = body(run, serverId=server["id"])
        assert (await one.post("/api/rules", wanted)).status_code == 201
        await office.require_second_person()
        task = await run.start(third)
        await run.answer({"text": "as asked"})
    if not shapes:
        # The rule approves the call, and could be made again.
        assert await run.status() == "RUNNING"
        assert (await one.post("/api/rules", wanted)).status_code == 201
        return
    assert await run.status() == "WAITING_APPROVAL"
    for shaper in (one, other, office.owner):
        assert because(await approve(shaper, task)) == ["acceptedTool"]
        assert because(await shaper.post("/api/rules", wanted)) == ["acceptedTool"]
    fourth = await office.join(approver=True)
    assert (await approve(fourth, task)).status_code == 200


async def test_nobody_approves_a_call_and_accepts_its_tool(run: OfficeRun, office: Office) -> None:
    one, other = office.approvers
    await office.require_second_person()
    task = await run.start(office.owner)
    await run.answer({"text": "as asked"})
    assert (await approve(one, task)).status_code == 200
    # The call is not made: the tool has changed. Approving does not help until it is accepted.
    await run.change_tool("Sends to me.")
    await run.begin()
    await run.act()
    refused = await approve(one, task)
    assert refused.status_code == 409, refused.text
    assert "peer/send" in refused.json()["error"]["message"]
    assert (await review_of(one, task))["state"] == "pending"
    await run.accept_as(one, "Sends to me.")
    assert because(await approve(one, task)) == ["acceptedTool"]
    assert (await approve(other, task)).status_code == 200
    await run.begin()
    await run.act()
    assert [made.definition for made in run.client.made] == ["Sends to me."]


async def test_a_call_of_an_earlier_definition_is_rejected(run: OfficeRun, office: Office) -> None:
    one, other = office.approvers
    await office.require_second_person()
    task = await run.start(office.owner)
    await run.answer({"text": "as asked"})
    await run.accept_as(one, "Sends to me.")
    assert (await approve(other, task)).status_code == 409
    rejected = await other.post(f"/api/tasks/{task['id']}/reject", {"resume": True})
    assert rejected.status_code == 200, rejected.text
    await run.begin()
    await run.answer({"text": "as asked"})
    assert (await approve(other, task)).status_code == 200
