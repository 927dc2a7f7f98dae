"""Attempts of a tool call that end after another attempt took over, and calls with an unknown
outcome: what a person decided holds, and nothing is made twice without a decision."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.platform.errors import RateLimited
from rota.runs.backoff import MIN_TURN_S
from rota.runs.bounds import TimeLimitReached
from rota.runs.call_texts import UNKNOWN
from rota.runs.contracts import CallInput
from rota.runs.run_context import FencedOut
from rota.runs.tool_call import Started
from rota.runs.tools import AccountBusy, ToolUnavailable
from rota.tasks import transitions
from rota.tasks.states import Trigger
from tests.runs.gated_run import ASKED, CATALOG, GatedRun, decide, work
from tests.runs.runner import shown
from tests.service import Service


@pytest.fixture(scope="module")
async def service(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="late_attempts") as started:
        await sync(started.database_url, CATALOG)
        yield started


async def begin(run: GatedRun, agent: str = "operator") -> None:
    await run.open(agent)
    await run.begin()
    await run.answer(ASKED)


async def attempt(run: GatedRun) -> Started:
    """An attempt that marks the call as started, and then hangs."""
    [started] = (await run.tool_caller.start(run.run_input, 1, [1])).values()
    assert isinstance(started, Started)
    return started


async def interrupted_after_approval(run: GatedRun) -> None:
    """A call that a person approved, and that was started but has no result."""
    await begin(run)
    await decide(run, run.one, await run.review(run.one))
    await run.begin()
    await attempt(run)


CALL = (1, 1)


async def test_a_late_attempt_does_not_undo_a_rejection(run: GatedRun) -> None:
    await begin(run, "trusting")
    late = await attempt(run)
    # Temporal takes its worker for dead. The next attempt asks a person.
    await run.act()
    review = await run.review(run.one)
    assert "unknown whether it took effect" in review["items"][0]["reason"]
    call_input = CallInput(run.run_input, *CALL)
    await run.tool_caller._reset(call_input, late)
    body = {"review": shown(review), "resume": True, "reason": "No."}
    assert (await run.one.post(f"{run.path}/reject", body)).status_code == 200
    await run.tool_caller._reset(call_input, late)
    await work(run)
    assert run.client.made == []


async def test_a_late_attempt_does_not_make_a_call_that_a_person_rejected(run: GatedRun) -> None:
    await begin(run, "trusting")
    # The worker is paused after it marked the call as started, before it sends the request.
    late = await attempt(run)
    await run.act()
    body = {"review": shown(await run.review(run.one)), "resume": True, "reason": "No."}
    assert (await run.one.post(f"{run.path}/reject", body)).status_code == 200
    await run.begin()
    paused = replace(late, checked_s=late.checked_s - 60)
    with pytest.raises(FencedOut):
        await run.tool_caller.make(CallInput(run.run_input, *CALL), paused)
    assert run.client.made == []


async def test_a_late_attempt_does_not_repeat_a_finished_call(run: GatedRun) -> None:
    await begin(run)
    await decide(run, run.one, await run.review(run.one))
    await run.begin()
    late = await attempt(run)
    await run.act()
    review = await run.review(run.one)
    await decide(run, run.one, review)
    await work(run)
    assert len(run.client.made) == 1
    call_input = CallInput(run.run_input, *CALL)
    await run.tool_caller._reset(call_input, late)
    await run.tool_caller._ask_again(call_input, late, late.tool, UNKNOWN, maybe_made=True)
    [row] = await run.tool_rows()
    assert row.state == "finished"
    await work(run)
    assert len(run.client.made) == 1


async def test_an_interrupted_call_to_a_server_that_is_gone_is_not_called_unmade(
    run: GatedRun,
) -> None:
    await interrupted_after_approval(run)
    await run.replace_server("https://elsewhere.example/")
    await run.act()
    [row] = await run.tool_rows()
    assert "unknown whether it took effect" in row.result


async def test_the_model_learns_that_a_call_may_have_been_made_whatever_happened_since(
    run: GatedRun,
) -> None:
    await begin(run)
    run.client.lost = 1
    await decide(run, run.one, await run.review(run.one))
    await work(run)
    await decide(run, run.one, await run.review(run.one))
    await run.redefine("Sends to everybody.")
    await work(run)
    body = {"review": shown(await run.review(run.one)), "resume": True}
    assert (await run.one.post(f"{run.path}/reject", body)).status_code == 200
    await run.begin()
    [row] = await run.tool_rows()
    assert "may have taken effect" in row.result
    assert len(run.client.made) == 1


async def test_the_key_of_a_call_stays_the_same_in_a_retry_from_failure(run: GatedRun) -> None:
    await begin(run)
    run.client.lost = 1
    await decide(run, run.one, await run.review(run.one))
    await work(run)
    await decide(run, run.one, await run.review(run.one))
    run.client.unavailable = 1
    with pytest.raises(ToolUnavailable):
        await work(run)
    await run.fail()
    await run.editor.post(f"{run.path}/retry", {"from": "failure"})
    run.run = 2
    await run.begin(resume=True)
    await run.act()
    assert len(run.client.keys) == 3
    assert len(set(run.client.keys)) == 1


async def test_a_call_that_was_edited_has_another_key_than_the_call_that_may_have_been_made(
    run: GatedRun,
) -> None:
    await begin(run)
    run.client.lost = 3
    for text in (None, "other", None):
        review = await run.review(run.one)
        item = {"id": review["items"][0]["id"]}
        edit = item if text is None else item | {"arguments": {"text": text}}
        assert (await decide(run, run.one, review, decisions=[edit])).status_code == 200
        await work(run)
    texts = [made.arguments["text"] for made in run.client.made]
    assert texts == [ASKED["text"], "other", "other"]
    first, edited, repeated = run.client.keys
    assert first == f"{run.task_id.removeprefix('task_')}-call-1-1-1"
    assert edited.startswith(f"{first}-")
    assert repeated == edited


async def test_a_call_that_fails_before_it_is_sent_is_repeated_unasked(run: GatedRun) -> None:
    await begin(run)
    await decide(run, run.one, await run.review(run.one))
    run.client.stopped = 1
    with pytest.raises(ToolUnavailable):
        await work(run)
    assert run.client.made == []
    await work(run)
    assert len(run.client.made) == 1
    [row] = await run.tool_rows()
    assert (row.state, row.outcome, row.maybe_made) == ("finished", "ok", False)


@pytest.mark.parametrize("tool", ["peer__send", "ask_person", "delegate"])
async def test_a_call_that_an_earlier_run_left_undecided_is_asked_for_again(
    run: GatedRun, tool: str
) -> None:
    await run.open("foreman")
    await run.begin()
    arguments = {
        "peer__send": ASKED,
        "ask_person": {"question": "Which?"},
        "delegate": {"agent": "operator", "name": "A part", "input": "Help."},
    }
    await run.answer(arguments[tool], tool=tool)
    if tool == "delegate":
        # Its policy does not ask, so the row waits as if it did.
        await run.write("UPDATE steps SET state = 'gated' WHERE account_id = $1 AND call > 0")
    else:
        await decide(run, run.one, await run.review(run.one))
    # The run fails as in earlier versions, which did not apply the decision first.
    async with run.context.locked(run.run_input) as (tx, task):
        assert task is not None
        await transitions.apply(tx, task, task, "FAILED", Trigger.RUN)
    await run.editor.post(f"{run.path}/retry", {"from": "failure"})
    run.run = 2
    next_step = await run.begin(resume=True)
    assert (next_step.kind, next_step.calls) == ("act", [1])
    await run.act()
    assert await run.status() == "WAITING_APPROVAL"
    assert run.client.made == []
    review = await run.review(run.one)
    assert (await decide(run, run.one, review)).status_code == 200
    await work(run)
    [row] = await run.tool_rows()
    assert row.outcome == "ok" or row.state == "delegated"
    assert len(run.client.made) == (tool == "peer__send")


# Rows of the version before reviews and calls were sealed.

UNSEAL_ITEMS = """
    UPDATE reviews SET items = (SELECT jsonb_agg(item - 'sealed' - 'digest' - 'serverId')
                                FROM jsonb_array_elements(items) AS item)
    WHERE account_id = $1 AND jsonb_array_length(items) > 0
"""
UNSEAL_CALLS = "UPDATE steps SET sealed = NULL, approved_digest = NULL WHERE account_id = $1"


async def test_items_of_the_previous_version_can_be_edited_answered_and_approved(
    run: GatedRun,
) -> None:
    await run.open()
    await run.begin()
    await run.answer({"text": "a"}, {"text": "b"})
    await run.write(UNSEAL_ITEMS)
    await run.write(UNSEAL_CALLS)
    review = await run.review(run.one)
    first, second = (item["id"] for item in review["items"])
    edit = [{"id": first, "arguments": {"text": "edited"}}]
    for _ in range(2):
        assert (await decide(run, run.one, review, decisions=edit)).status_code == 200
    same = [{"id": second}]
    assert (await decide(run, run.one, review, decisions=same)).status_code == 200
    equal = [{"id": second, "arguments": {"text": "b"}}]
    assert (await decide(run, run.two, review, decisions=equal)).status_code == 200
    await work(run)
    # The calls are not made: what they were shown with is not known.
    assert run.client.made == []
    rows = await run.tool_rows()
    assert rows
    assert all("Call the tool again" in row.result for row in rows)


async def test_an_interrupted_call_of_the_previous_version_is_not_called_unmade(
    run: GatedRun,
) -> None:
    await interrupted_after_approval(run)
    await run.write(UNSEAL_CALLS)
    await run.act()
    [row] = await run.tool_rows()
    assert "unknown whether it took effect" in row.result


async def test_processes_of_the_previous_version_still_open_and_decide_reviews(
    run: GatedRun,
) -> None:
    await begin(run)
    await run.write(
        """
        INSERT INTO reviews (account_id, task_id, number, state, gate, requested_at, expires_at,
                             items)
        SELECT account_id, task_id, 2, 'pending', gate, now(), now() + interval '1 day',
               '[{"id": "call-1-1-1", "tool": "send", "server": "peer", "arguments": {},
                  "argumentsSchema": null, "reason": null, "decision": "approved",
                  "decidedBy": "user_x", "decidedAt": null}]'
        FROM reviews WHERE account_id = $1
        """
    )
    review = await run.review(run.one)
    assert (review["number"], len(review["digest"])) == (2, 64)
    by = review["items"][0]["decidedBy"]
    assert by == {"userId": "user_x", "name": None, "via": None, "keyId": None, "ruleId": None}
    assert (await run.one.get("/api/approvals")).status_code == 200


async def test_a_run_does_not_wait_for_its_accounts_turn_forever(run: GatedRun) -> None:
    await begin(run)
    waiting = CallInput(run.run_input, 1)
    busy = AccountBusy(RateLimited("Too many."))
    assert await run.activities._model_caller.turn_in_s(waiting, busy) <= 1.2 * MIN_TURN_S
    await run.write(
        "UPDATE tasks SET started_at = started_at - interval '25 hours' WHERE account_id = $1"
    )
    with pytest.raises(TimeLimitReached):
        await run.activities._model_caller.turn_in_s(waiting, busy)
