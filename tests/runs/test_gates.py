"""Gates: before a run starts, before tool calls, and before the answer becomes the output."""

import asyncio
import json
from typing import Any

import pytest

from rota.runs.call_texts import GONE
from rota.runs.transcript import EDITED_CALL
from rota.tasks.model import Actor, Credential, ReviewAnswer, ReviewItem
from tests.assertions import MOMENT, assert_error, assert_invalid
from tests.runs.model_server import DEFINITIONS
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, last_message, says
from tests.service import Person
from tests.tasks.world import expire_reviews


@pytest.mark.parametrize("body", [{"agent": "starter"}, {"status": "WAITING_APPROVAL"}])
async def test_a_run_does_not_start_until_its_run_gate_is_approved(
    runner: Runner, scripted: Scripted, person: Person, body: dict[str, Any]
) -> None:
    script = await scripted.script(says("Started."))
    task = await runner.begin(person, **{"agent": "writer", "script": script, **body})
    assert task["status"] == "WAITING_APPROVAL"
    review = await runner.review(person, task)
    assert (review["state"], review["gate"], review["items"]) == ("pending", "run", [])
    assert await scripted.asked(script) == []
    decided = await runner.approve(person, task)
    assert decided["task"]["status"] == "PENDING"
    assert decided["review"]["state"] == "approved"
    task = await runner.until(person, task, "COMPLETED")
    assert task["output"] == "Started."
    assert await runner.events(person, task) == [
        "task.created",
        "task.waiting_approval",
        "task.approved",
        "task.started",
        "task.completed",
    ]


async def test_a_rejected_run_never_starts(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("Started."))
    task = await runner.begin(person, "starter", script)
    resume = await person.post(f"/api/tasks/{task['id']}/reject", {"resume": True})
    assert_error(resume, 409, "CONFLICT")
    decided = await runner.reject(person, task, reason="Too expensive.")
    assert decided["task"]["status"] == "CANCELLED"
    assert decided["review"]["state"] == "rejected"
    assert decided["review"]["history"][0]["reason"] == "Too expensive."
    assert await scripted.asked(script) == []
    assert (await runner.timeline(person, task))[1] == 1


async def test_the_agents_policy_decides_which_tool_calls_wait(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    asks = {
        ("writer", "lookup"): False,
        ("writer", "send"): False,
        ("careful", "lookup"): False,
        ("careful", "send"): True,
        ("wary", "lookup"): True,
        ("wary", "send"): True,
        ("picky", "lookup"): True,
        ("picky", "send"): False,
    }

    async def one(agent: str, tool: str, wanted: bool) -> None:
        ref = f"policy-{agent}-{tool}"
        script = await scripted.script(calls((f"desk__{tool}", {"ref": ref})), says("Done."))
        task = await runner.begin(person, agent, script)
        if wanted:
            await runner.waiting(person, task, "tool")
            assert await scripted.done(ref) == []
            await runner.approve(person, task)
        await runner.until(person, task, "COMPLETED")
        assert len(await scripted.done(ref)) == 1
        assert (await runner.review(person, task))["state"] == ("approved" if wanted else "none")

    await asyncio.gather(*[one(*key, wanted) for key, wanted in asks.items()])


async def test_a_review_shows_exactly_the_documented_fields(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "review"}), text=" It is only a draft. "), says("Done.")
    )
    task = await runner.begin(person, "careful", script)
    review = await runner.waiting(person, task, "tool")
    assert review.keys() == {
        "taskId", "number", "digest", "state", "gate", "requestedAt", "expiresAt", "work",
        "summary", "items", "secondPerson", "shaped", "history",
    }  # fmt: skip
    assert review["taskId"] == task["id"]
    assert MOMENT.fullmatch(review["requestedAt"])
    assert MOMENT.fullmatch(review["expiresAt"])
    assert review["history"] == []
    [item] = review["items"]
    assert len(item.pop("digest")) == 64
    assert item == {
        "id": "call-1-1-1",
        "tool": "send",
        "server": "desk",
        "serverId": "desk",
        "serverRevision": 1,
        "serverUrl": None,
        "toolDescription": DEFINITIONS[1]["description"],
        # The scripted tools are not those of a connected tool server.
        "toolTitle": None,
        "annotations": None,
        "definitionHash": None,
        "definitionAccepted": None,
        "acceptedBy": None,
        "acceptedAt": None,
        "summary": "Send the message review",
        "agentSays": "It is only a draft.",
        "edited": False,
        "editedBy": None,
        "arguments": {"ref": "review"},
        "argumentsSchema": DEFINITIONS[1]["argumentsSchema"],
        "reason": "The agent's policy requires approval of this call.",
        "decision": None,
        "decidedBy": None,
        "decidedAt": None,
    }
    decided = (await runner.approve(person, task))["review"]
    assert decided["state"] == "approved"
    [item] = decided["items"]
    assert item["decision"] == "approved"
    by = item["decidedBy"]
    assert (by["userId"], by["name"], by["via"]) == (f"user_{person.user_id.hex}", "Test", "key")
    assert MOMENT.fullmatch(item["decidedAt"])
    [past] = decided["history"]
    assert past.keys() == {
        "number", "digest", "state", "gate", "requestedAt", "expiresAt", "decidedBy", "decidedAt",
        "reason", "items",
    }  # fmt: skip
    await runner.until(person, task, "COMPLETED")


async def test_reviews_are_stored_with_the_fields_of_their_types(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    send = await scripted.script(calls(("desk__send", {"ref": "stored"})), says("Done."))
    answer = await scripted.script(says("A draft."))
    for agent, script, gate, edited in (
        ("careful", send, "tool", {"ref": "stored again"}),
        ("editor", answer, "output", {"output": "A text."}),
    ):
        task = await runner.begin(person, agent, script)
        [item] = (await runner.waiting(person, task, gate))["items"]
        await runner.approve(person, task, {"id": item["id"], "arguments": edited})
        await runner.until(person, task, "COMPLETED")
    async with runner.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT items::text, answers::text, decided_with::text FROM reviews"
            " WHERE account_id = $1",
            person.user_id,
        )
    assert len(rows) == 2
    for row in rows:
        [item], [recent], credential = (json.loads(text) for text in row)
        shapes: list[tuple[Any, Any]] = [
            (item, ReviewItem),
            (item["decidedBy"], Actor),
            (recent, ReviewAnswer),
            (recent["by"], Actor),
            (credential, Credential),
        ]
        for stored, shape in shapes:
            assert shape.__required_keys__ <= stored.keys() <= shape.__annotations__.keys()


async def test_items_can_be_approved_and_edited_separately_and_exactly_those_calls_are_made(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(
            ("desk__send", {"ref": "first", "text": "as asked"}),
            ("desk__send", {"ref": "second", "text": "as asked"}),
        ),
        says("Both sent."),
    )
    task = await runner.begin(person, "careful", script)
    one, two = (item["id"] for item in (await runner.waiting(person, task, "tool"))["items"])
    path = f"/api/tasks/{task['id']}/approve"

    async def refused(decision: dict[str, Any], *fields: str) -> None:
        assert_invalid(await person.post(path, {"decisions": [decision]}), *fields)

    await refused({"id": two, "arguments": {"text": 5}}, *[f"decisions.{two}.arguments"] * 2)
    await refused({"id": two, "arguments": {"ref": "x", "also": 1}}, f"decisions.{two}.arguments")
    await refused({"id": "call-9-9-9"}, "decisions")

    decided = await runner.approve(person, task, {"id": one})
    assert decided["task"]["status"] == "WAITING_APPROVAL"
    assert decided["review"]["state"] == "pending"
    assert [item["decision"] for item in decided["review"]["items"]] == ["approved", None]
    assert await scripted.done("first") == []
    again = await runner.approve(person, task, {"id": one})
    assert again == decided
    other = {"decisions": [{"id": one, "arguments": {"ref": "other"}}]}
    assert (await person.post(path, other)).status_code == 409

    edited = {"ref": "third", "text": "as a person wants it"}
    decided = await runner.approve(person, task, {"id": two, "arguments": edited})
    assert decided["task"]["status"] == "RUNNING"
    assert decided["review"]["items"][1]["arguments"] == edited
    await runner.until(person, task, "COMPLETED")
    assert [c["arguments"] for c in await scripted.done("first")] == [
        {"ref": "first", "text": "as asked"}
    ]
    assert await scripted.done("second") == []
    assert [c["arguments"] for c in await scripted.done("third")] == [edited]
    steps, _ = await runner.timeline(person, task)
    assert edited in [step["arguments"] for step in steps if step["kind"] == "tool"]
    # The model reads what was sent, not what it asked for, and learns who changed it.
    *_, said, first, second = (await scripted.asked(script))[-1]["messages"]
    sent = [json.loads(call["function"]["arguments"]) for call in said["tool_calls"]]
    assert sent == [{"ref": "first", "text": "as asked"}, edited]
    assert "A person changed" not in first["content"]
    assert second["content"].endswith(EDITED_CALL.format(names="ref, text"))


async def test_the_model_reads_what_a_person_changed_in_forks_and_after_an_interrupted_call(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    async def check(asked: dict[str, Any], ref: str) -> str:
        *_, said, result = asked["messages"]
        [call] = said["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"ref": ref}
        text: str = result["content"]
        assert text.endswith(EDITED_CALL.format(names="ref"))
        return text

    await scripted.behave("edited-lost", {"drop": True})
    for ref in ("edited-sent", "edited-lost"):
        script = await scripted.script(calls(("desk__send", {"ref": "asked"})), says("Done."))
        task = await runner.begin(person, "careful", script)
        [item] = (await runner.waiting(person, task, "tool"))["items"]
        await runner.approve(person, task, {"id": item["id"], "arguments": {"ref": ref}})
        if ref == "edited-lost":
            await runner.waiting(person, task, "tool")
            await runner.reject(person, task, resume=True)
        await runner.until(person, task, "COMPLETED")
        text = await check((await scripted.asked(script))[1], ref)
        assert ("may have taken effect" in text) == (ref == "edited-lost")
        answer = await person.post(f"/api/tasks/{task['id']}/fork", {"fromStep": 1})
        await runner.until(person, answer.json()["task"], "COMPLETED")
        assert await check((await scripted.asked(script))[2], ref) == text


async def test_the_model_learns_the_reason_for_a_rejected_call_and_the_approved_call_is_made(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "kept"}), ("desk__send", {"ref": "dropped"})),
        says("One of two."),
    )
    task = await runner.begin(person, "careful", script)
    kept, _ = (await runner.waiting(person, task, "tool"))["items"]
    await runner.approve(person, task, {"id": kept["id"]})
    decided = await runner.reject(person, task, resume=True, reason="Not this one.")
    assert decided["task"]["status"] == "RUNNING"
    assert [i["decision"] for i in decided["review"]["items"]] == ["approved", "rejected"]
    await runner.until(person, task, "COMPLETED")
    assert len(await scripted.done("kept")) == 1
    assert await scripted.done("dropped") == []
    _, second = await scripted.asked(script)
    assert "A person rejected this call. Reason: Not this one." in last_message(second)


async def test_rejecting_without_resume_cancels_the_task_and_makes_no_further_call(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "never"})), says("Sent."))
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    decided = await runner.reject(person, task, reason="No.")
    assert decided["task"]["status"] == "CANCELLED"
    assert await runner.events(person, task) == [
        "task.created", "task.started", "task.waiting_approval", "task.rejected", "task.cancelled",
    ]  # fmt: skip
    await runner.history_ends(task)
    assert await scripted.done("never") == []
    assert await scripted.count(script) == {0: 1}


async def test_an_approval_is_void_if_the_tool_changed_after_it(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "changed"})), says("Sent."))
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    changed = [DEFINITIONS[0], {**DEFINITIONS[1], "description": "Sends it to the whole world."}]
    await scripted.define(person.user_id, changed)
    await runner.approve(person, task)

    async def second_review() -> dict[str, Any]:
        return await runner.review(person, task)

    review = await runner.seen(second_review, lambda r: len(r["history"]) == 1, pending=True)
    assert "changed after the call was planned or approved" in review["items"][0]["reason"]
    assert review["items"][0]["decision"] is None
    assert review["history"][0]["state"] == "approved"
    assert await scripted.done("changed") == []
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")
    assert len(await scripted.done("changed")) == 1


async def test_the_model_learns_that_an_approved_tool_no_longer_exists(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "gone"})), says("Never mind."))
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    await scripted.define(person.user_id, [])
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")
    assert last_message((await scripted.asked(script))[1]) == GONE


async def test_an_answer_becomes_the_output_after_approval_unchanged_or_edited(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("A draft."))
    task = await runner.begin(person, "editor", script)
    review = await runner.waiting(person, task, "output")
    [item] = review["items"]
    assert item["arguments"] == {"output": "A draft."}
    assert (item["tool"], item["server"]) == (None, None)
    assert (await runner.task(person, task["id"]))["output"] is None
    decided = await runner.approve(person, task)
    assert (decided["task"]["status"], decided["task"]["output"]) == ("COMPLETED", "A draft.")

    task = await runner.begin(person, "editor", script)
    [item] = (await runner.waiting(person, task, "output"))["items"]
    bad = {"decisions": [{"id": item["id"], "arguments": {"output": 1}}]}
    answer = await person.post(f"/api/tasks/{task['id']}/approve", bad)
    assert_invalid(answer, f"decisions.{item['id']}.arguments")
    edited = {"id": item["id"], "arguments": {"output": "A better draft."}}
    decided = await runner.approve(person, task, edited)
    assert decided["task"]["output"] == "A better draft."
    assert await runner.events(person, task) == [
        "task.created", "task.started", "task.waiting_approval", "task.approved", "task.completed",
    ]  # fmt: skip
    await runner.history_ends(task)


async def test_a_rejected_output_is_written_again_and_the_model_knows_the_reason(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("Too long."), says("Short."))
    task = await runner.begin(person, "editor", script)
    await runner.waiting(person, task, "output")
    await runner.reject(person, task, resume=True, reason="Half of it, please.")
    await runner.until(person, task, "WAITING_APPROVAL")

    async def review() -> dict[str, Any]:
        return await runner.review(person, task)

    seen = await runner.seen(review, lambda r: len(r["history"]) == 1, pending=True)
    assert seen["items"][0]["arguments"] == {"output": "Short."}
    _, second = await scripted.asked(script)
    assert second["messages"][-1]["role"] == "user"
    assert "A person rejected this answer. Reason: Half of it, please." in last_message(second)
    await runner.approve(person, task)
    assert (await runner.until(person, task, "COMPLETED"))["output"] == "Short."

    task = await runner.begin(person, "editor", script)
    await runner.waiting(person, task, "output")
    assert (await runner.reject(person, task))["task"]["status"] == "CANCELLED"


async def test_a_gate_without_a_decision_in_time_cancels_the_task(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "late"})), says("Sent."))
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    async with runner.service.owner() as connection:
        await expire_reviews(connection, task)
    await runner.until(person, task, "CANCELLED")
    assert (await runner.review(person, task))["state"] == "expired"
    await runner.history_ends(task)
    assert await scripted.done("late") == []
