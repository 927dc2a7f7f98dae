"""Rules over HTTP: who makes them, what is refused, and what makes them void."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rota.agents.sync import sync
from rota.mcp import definitions
from rota.mcp import queries as mcp
from rota.platform.ids import to_wire
from tests.assertions import assert_invalid
from tests.policies.world import Office, OfficeRun, Seat, because, code, review_of
from tests.rules.conftest import CATALOG
from tests.runs.gated_run import listed, send
from tests.runs.runner import shown
from tests.service import Person, Service

ANY = {"text": {"any": True}}


def body(run: OfficeRun, **changes: Any) -> dict[str, Any]:
    return {
        "serverId": to_wire("mcp", run.server.id),
        "tool": "send",
        "agent": "operator",
        "arguments": ANY,
        "expiresAt": "2099-01-31T12:00:00Z",
        "maxUses": 2,
        **changes,
    }


async def make(run: OfficeRun, by: Seat, **changes: Any) -> dict[str, Any]:
    answer = await by.post("/api/rules", body(run, **changes))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["rule"]
    return found


async def rule_now(person: Seat, rule: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await person.get(f"/api/rules/{rule['id']}")).json()["rule"]
    return found


async def test_an_approver_makes_lists_and_deletes_rules(run: OfficeRun, office: Office) -> None:
    approver, other = office.approvers
    key = {"Idempotency-Key": "one"}
    made = await approver.post("/api/rules", body(run), headers=key)
    assert made.status_code == 201, made.text
    rule = made.json()["rule"]
    assert (rule["state"], rule["uses"], rule["maxUses"]) == ("active", 0, 2)
    assert (rule["serverRevision"], rule["agentVersion"]) == (1, 1)
    assert rule["createdBy"] == approver.wire_id
    again = await approver.post("/api/rules", body(run), headers=key)
    assert again.headers["Idempotent-Replayed"] == "true"
    newer = await make(run, other)
    listed = (await office.owner.get("/api/rules?limit=1")).json()
    assert (listed["total"], listed["rules"]) == (2, [newer])
    assert await rule_now(office.owner, rule) == rule
    for _ in range(2):
        gone = await other.delete(f"/api/rules/{rule['id']}")
        assert gone.json() == {"deleted": True, "id": rule["id"]}
    assert (await rule_now(approver, rule))["state"] == "revoked"
    types = [event["type"] for event in await office.company.events()]
    assert (types.count("rule.created"), types.count("rule.revoked")) == (2, 1)


REFUSED: list[tuple[dict[str, Any], int, str, str]] = [
    ({"serverId": to_wire("mcp", UUID(int=1))}, 404, "NOT_FOUND", "server"),
    ({"serverId": "x"}, 404, "NOT_FOUND", "server"),
    ({"tool": "receive"}, 404, "NOT_FOUND", "no tool named"),
    ({"agent": "nobody"}, 400, "VALIDATION_ERROR", "not in the catalog"),
    ({"agent": None}, 400, "VALIDATION_ERROR", "required"),
    ({"arguments": None}, 400, "VALIDATION_ERROR", "required"),
    ({"expiresAt": "2020-01-31T12:00:00Z"}, 400, "VALIDATION_ERROR", "future"),
    ({"maxUses": 0}, 400, "VALIDATION_ERROR", "maxUses"),
    ({"maxUses": 1_000_001}, 400, "VALIDATION_ERROR", "maxUses"),
    ({"arguments": {"text": {}}}, 400, "VALIDATION_ERROR", "exactly one of"),
    ({"arguments": {"text": {"any": False}}}, 400, "VALIDATION_ERROR", "text"),
    ({"arguments": {"text": {"enum": []}}}, 400, "VALIDATION_ERROR", "enum"),
    ({"arguments": {"text": {"min": None}}}, 400, "VALIDATION_ERROR", "exactly one of"),
    ({"arguments": {"text": {"min": 10, "max": 1}}}, 400, "VALIDATION_ERROR", "greater than max"),
    ({"arguments": {"text": {"min": "1"}}}, 400, "VALIDATION_ERROR", "min"),
    ({"arguments": {"text": {"const": 1, "any": True}}}, 400, "VALIDATION_ERROR", "one of"),
    ({"arguments": {"text": {"const": 1, "min": 1}}}, 400, "VALIDATION_ERROR", "one of"),
    ({"arguments": {"text": {"equals": 1}}}, 400, "VALIDATION_ERROR", "Unknown field"),
    ({"arguments": {"text": {"const": "x" * 70_000}}}, 400, "VALIDATION_ERROR", "65536 bytes"),
    (
        {"fromReview": {"taskId": "task_x", "itemId": "call-1-1-1"}},
        400,
        "VALIDATION_ERROR",
        "must be absent with fromReview",
    ),
]


async def test_a_rule_that_could_not_work_is_refused(run: OfficeRun, office: Office) -> None:
    for changes, status, error, says in REFUSED:
        answer = await office.approvers[0].post("/api/rules", body(run, **changes))
        assert (answer.status_code, code(answer)) == (status, error), answer.text
        assert says in answer.json()["error"]["message"]
    assert (await office.owner.get("/api/rules")).json()["total"] == 0


async def test_a_rule_that_no_call_can_match_is_refused(run: OfficeRun, office: Office) -> None:
    schema = send("Sends.")["inputSchema"] | {"required": ["text"], "additionalProperties": False}
    definition = send("Sends.") | {"inputSchema": schema}
    async with run.parts.db.write(run.account_id) as tx:
        await definitions.save(tx, run.server.id, [], {"send": listed(definition)})
        await mcp.accept(tx, run.server.id, ["send"], run._acceptance)
    for arguments, wrong in (({}, "text"), ({"text": {"any": True}, "txt": {"any": True}}, "txt")):
        answer = await office.approvers[0].post("/api/rules", body(run, arguments=arguments))
        assert_invalid(answer, f"arguments.{wrong}")


async def test_a_tool_that_agents_cannot_use_has_no_rules(run: OfficeRun, office: Office) -> None:
    await run.write("UPDATE mcp_servers SET allowed_tools = '{other}' WHERE account_id = $1")
    answer = await office.owner.post("/api/rules", body(run))
    assert (answer.status_code, code(answer)) == (403, "AUTHORIZATION_ERROR")
    await run.write("UPDATE mcp_servers SET allowed_tools = NULL WHERE account_id = $1")
    await run.write("UPDATE mcp_tools SET live_hash = 'x' WHERE account_id = $1")
    answer = await office.owner.post("/api/rules", body(run))
    assert (answer.status_code, code(answer)) == (409, "CONFLICT")
    await run.write("UPDATE mcp_tools SET live_hash = accepted_hash WHERE account_id = $1")
    await run.write("UPDATE mcp_servers SET name = 'elsewhere' WHERE account_id = $1")
    answer = await office.owner.post("/api/rules", body(run))
    assert (answer.status_code, code(answer)) == (400, "VALIDATION_ERROR")
    assert "operator cannot use elsewhere/send" in answer.json()["error"]["message"]


async def test_keys_members_and_strangers_make_no_rules(run: OfficeRun, office: Office) -> None:
    rule = await make(run, office.owner)
    key, member = await office.owner.key(), await office.join()
    for person in (key, member):
        answer = await person.post("/api/rules", body(run))
        assert (answer.status_code, code(answer)) == (403, "AUTHORIZATION_ERROR")
        assert (await person.delete(f"/api/rules/{rule['id']}")).status_code == 403
    assert (await member.get("/api/rules")).json()["total"] == 1
    stranger = await office.owner.service.sign_in()
    for answer in (
        await stranger.get(f"/api/rules/{rule['id']}"),
        await stranger.delete(f"/api/rules/{rule['id']}"),
        await office.owner.get("/api/rules/rule_x"),
    ):
        assert (answer.status_code, code(answer)) == (404, "NOT_FOUND")


async def test_an_account_has_a_limited_number_of_rules_in_force(
    run: OfficeRun, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.rules.service.MAX_RULES", 2)
    rules = [await make(run, office.owner) for _ in range(2)]
    refused = await office.owner.post("/api/rules", body(run))
    assert (refused.status_code, code(refused)) == (409, "CONFLICT")
    await office.owner.delete(f"/api/rules/{rules[0]['id']}")
    await make(run, office.owner)


async def test_who_accepted_the_tool_makes_no_rule_if_a_second_person_is_required(
    run: OfficeRun, office: Office
) -> None:
    await office.require_second_person()
    refused = await office.owner.post("/api/rules", body(run))
    assert because(refused) == ["acceptedTool"]
    await make(run, office.approvers[0])


async def test_a_rule_is_made_from_a_review(run: OfficeRun, office: Office) -> None:
    task = await run.start(office.owner)
    await run.answer({"text": "Hello", "times": 3})
    item = (await review_of(office.owner, task))["items"][0]
    review = {"taskId": task["id"], "itemId": item["id"]}
    base = {"fromReview": review, "expiresAt": "2099-01-31T12:00:00Z", "maxUses": 5}
    made = await office.owner.post("/api/rules", base)
    assert made.status_code == 201, made.text
    rule = made.json()["rule"]
    assert rule["arguments"] == {"text": {"const": "Hello"}, "times": {"const": 3}}
    assert (rule["tool"], rule["agent"]) == ("send", "operator")
    assert (rule["serverId"], rule["definitionHash"]) == (item["serverId"], item["definitionHash"])
    wider = {"text": {"any": True}, "times": {"min": 1, "max": 3}}
    made = await office.owner.post("/api/rules", base | {"arguments": wider})
    assert made.json()["rule"]["arguments"] == wider

    unknown = base | {"fromReview": review | {"itemId": "call-9-9-9"}}
    refused = await office.owner.post("/api/rules", unknown)
    assert (refused.status_code, code(refused)) == (400, "VALIDATION_ERROR")
    missing = base | {"fromReview": review | {"taskId": "task_x"}}
    refused = await office.owner.post("/api/rules", missing)
    assert (refused.status_code, code(refused)) == (404, "NOT_FOUND")
    await run.move_server("https://moved.example/")
    refused = await office.owner.post("/api/rules", base)
    assert (refused.status_code, code(refused)) == (409, "CONFLICT")
    assert "tool server has changed since the review" in refused.json()["error"]["message"]


async def test_a_rule_is_not_made_from_a_review_of_another_version_of_the_agent(
    board: Service, run: OfficeRun, office: Office, tmp_path: Path
) -> None:
    task = await run.start(office.owner, "foreman")
    await run.answer({"text": "Hello"})
    review = await review_of(office.owner, task)
    approved = await office.owner.post(f"{run.path}/approve", {"review": shown(review)})
    assert approved.status_code == 200, approved.text
    await run.begin()
    await run.fail()
    named = {"taskId": task["id"], "itemId": review["items"][0]["id"]}
    base = {"fromReview": named, "expiresAt": "2099-01-31T12:00:00Z", "maxUses": 5}
    await office.owner.post(f"{run.path}/retry", {"from": "failure"})
    # The retry has the same version.
    assert (await office.owner.post("/api/rules", base)).status_code == 201
    run.run += 1
    await run.begin()
    await run.fail()
    for path in CATALOG.glob("*.md"):
        text = path.read_text()
        changed = text.replace("Follow the script.", "Obey it.", path.stem == "foreman")
        (tmp_path / path.name).write_text(changed)
    await sync(board.database_url, tmp_path)
    await office.owner.post(f"{run.path}/retry", {"from": "start"})
    refused = await office.owner.post("/api/rules", base)
    assert (refused.status_code, code(refused)) == (409, "CONFLICT")
    assert "agent has changed since the review" in refused.json()["error"]["message"]


async def test_questions_have_no_rules(run: OfficeRun, office: Office) -> None:
    task = await run.start(office.owner)
    await run.answer({"question": "Really?"}, tool="ask_person")
    item = (await review_of(office.owner, task))["items"][0]
    review = {"taskId": task["id"], "itemId": item["id"]}
    base = {"fromReview": review, "expiresAt": "2099-01-31T12:00:00Z", "maxUses": 5}
    refused = await office.owner.post("/api/rules", base)
    assert (refused.status_code, code(refused)) == (400, "VALIDATION_ERROR")
    assert "Rules cover only such calls" in refused.json()["error"]["message"]


async def test_a_rule_is_void_when_what_it_is_bound_to_changes(
    board: Service, run: OfficeRun, office: Office, tmp_path: Path
) -> None:
    maker = office.approvers[0]
    rule = await make(run, maker)

    async def reason() -> str | None:
        found = await rule_now(office.owner, rule)
        assert (found["state"] == "void") == (found["voidReason"] is not None)
        text: str | None = found["voidReason"]
        return text

    assert await reason() is None
    assert (await office.company.change(maker, approver=False)).status_code == 200
    assert "can no longer approve" in str(await reason())
    assert (await office.company.change(maker, approver=True)).status_code == 200
    assert await reason() is None
    assert (await office.company.remove(maker)).status_code == 200
    assert "can no longer approve" in str(await reason())
    # Without the header that selects the company, which the user is no member of.
    person = Person(maker.service, maker.subject, maker.token, maker.user_id)
    await office.company.add(person, approver=True)
    assert "has since left the company" in str(await reason())

    rule = await make(run, office.owner)
    await run.redefine("Sends to everybody.")
    assert "definition of the tool" in str(await reason())
    rule = await make(run, office.owner)
    await run.move_server("https://moved.example/")
    assert "tool server was changed" in str(await reason())
    rule = await make(run, office.owner, agent="collector")
    for path in CATALOG.glob("*.md"):
        text = path.read_text()
        changed = text.replace("Follow the script.", "Follow it.", path.stem == "collector")
        (tmp_path / path.name).write_text(changed)
    await sync(board.database_url, tmp_path)
    assert "version of the agent has changed" in str(await reason())
