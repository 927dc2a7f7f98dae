"""Every way in which a decision can go stale, and what happens then: nothing that was not shown."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.canonical import canonical_json, digest
from tests.runs.gated_run import ASKED, CATALOG, GatedRun, current_review, decide, work
from tests.runs.runner import shown
from tests.service import Service
from tests.tasks.world import patch


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"stale_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, CATALOG)
        yield started


@pytest.fixture
async def gated(service: Service) -> AsyncIterator[GatedRun]:
    """A run that waits at a tool gate with one call."""
    async with Composition(service.settings, pool_size=4) as parts:
        run = GatedRun(service, parts)
        await run.open()
        await run.begin()
        await run.answer(ASKED)
        yield run


async def test_an_approved_call_is_made_as_shown(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    assert (await decide(gated, gated.one, review)).status_code == 200
    await work(gated)
    [made] = gated.client.made
    assert (made.server_id, made.url) == (review["items"][0]["serverId"], gated.server.url)
    assert (made.arguments, made.definition) == (ASKED, "Sends.")


async def other_definition(run: GatedRun) -> None:
    await run.redefine("Sends to everybody.")


async def other_server(run: GatedRun) -> None:
    await run.replace_server("https://elsewhere.example/")


async def moved_server(run: GatedRun) -> None:
    await run.move_server("https://moved.example/")


async def unaccepted_definition(run: GatedRun) -> None:
    async with run.parts.db.write(run.account_id) as tx:
        await tx.execute(
            "UPDATE mcp_tools SET live_hash = 'x' WHERE account_id = $1", run.account_id
        )


async def disallowed_tool(run: GatedRun) -> None:
    async with run.parts.db.write(run.account_id) as tx:
        await tx.execute(
            "UPDATE mcp_servers SET allowed_tools = '{other}' WHERE account_id = $1",
            run.account_id,
        )


async def cancelled(run: GatedRun) -> None:
    assert (await patch(run.editor, run.task_id, status="CANCELLED")).status_code == 200


Change = Callable[[GatedRun], Awaitable[None]]


@pytest.mark.parametrize(
    "change",
    [
        other_definition,
        other_server,
        moved_server,
        unaccepted_definition,
        disallowed_tool,
        cancelled,
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_changes_before_or_after_the_approval_is_never_called(
    gated: GatedRun, change: Change, when: str
) -> None:
    review = await gated.review(gated.one)
    if when == "before":
        await change(gated)
    response = await decide(gated, gated.one, review)
    if when == "after":
        await change(gated)
    if change in (cancelled, other_server) and when == "before":
        assert response.status_code == 409
    else:
        # The review did not change: what it shows is not what the server has now.
        assert response.status_code == 200
    await work(gated)
    assert gated.client.made == []
    if change in (other_definition, moved_server, unaccepted_definition):
        again = await gated.review(gated.two)
        assert (again["state"], again["number"]) == ("pending", 2)
        assert again["digest"] != review["digest"]
        assert "changed" in again["items"][0]["reason"] or "differs" in again["items"][0]["reason"]


@pytest.mark.parametrize("change", [other_definition, moved_server])
async def test_a_call_that_was_shown_again_is_made_with_the_second_approval(
    gated: GatedRun, change: Change
) -> None:
    await decide(gated, gated.one, await gated.review(gated.one))
    await change(gated)
    await work(gated)
    second = await gated.review(gated.one)
    assert (await decide(gated, gated.one, second)).status_code == 200
    await work(gated)
    [made] = gated.client.made
    assert made.arguments == ASKED
    assert made.url == gated.server.url


async def test_other_arguments_of_another_person_are_not_confirmed(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    item_id = review["items"][0]["id"]
    edited = [{"id": item_id, "arguments": {"text": "edited"}}]
    first = await decide(gated, gated.two, review, decisions=edited)
    assert first.json()["review"]["digest"] == review["digest"]
    [item] = first.json()["review"]["items"]
    assert item["edited"]
    assert item["digest"] != review["items"][0]["digest"]
    # The same review, but another decision: as shown, or with a third text.
    assert (await decide(gated, gated.one, review)).status_code == 409
    third = [{"id": item_id, "arguments": {"text": "third"}}]
    assert (await decide(gated, gated.one, review, decisions=third)).status_code == 409
    assert (await decide(gated, gated.one, decisions=[{"id": "made-up"}])).status_code == 409
    assert (await decide(gated, gated.one, review, decisions=edited)).status_code == 200
    await work(gated)
    assert [made.arguments for made in gated.client.made] == [{"text": "edited"}]


async def test_a_decision_about_an_earlier_gate_does_not_decide_the_next_one(
    gated: GatedRun,
) -> None:
    first = await gated.review(gated.one)
    assert (await decide(gated, gated.one, first)).status_code == 200
    await work(gated)
    await gated.begin()
    await gated.answer({"text": "unseen"})
    second = current_review(await decide(gated, gated.one, first))
    assert (second["number"], second["state"]) == (2, "pending")
    assert second["items"][0]["arguments"] == {"text": "unseen"}
    # Without a review, a repeated request is the decision that was already made.
    assert current_review(await decide(gated, gated.one)) == second
    reject = await gated.one.post(f"{gated.path}/reject", {"review": shown(first)})
    assert current_review(reject) == second
    wrong = {**second, "digest": first["digest"]}
    assert current_review(await decide(gated, gated.one, wrong)) == second
    await work(gated)
    assert [made.arguments for made in gated.client.made] == [ASKED]
    # Another person has not decided yet, so a decision without a review is a new one.
    assert (await decide(gated, gated.two)).status_code == 200
    await work(gated)
    assert [made.arguments for made in gated.client.made] == [ASKED, {"text": "unseen"}]


async def test_a_repeated_rejection_does_not_reject_the_next_call(gated: GatedRun) -> None:
    body = {"reason": "Not this.", "resume": True}
    assert (await gated.one.post(f"{gated.path}/reject", body)).status_code == 200
    assert (await gated.one.post(f"{gated.path}/reject", body)).status_code == 200
    await gated.begin()
    await gated.answer({"text": "better"})
    refused = current_review(await gated.one.post(f"{gated.path}/reject", body))
    assert refused["items"][0]["arguments"] == {"text": "better"}


async def test_an_expired_review_is_not_approved(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    async with gated.parts.db.write(gated.account_id) as tx:
        await tx.execute(
            "UPDATE reviews SET expires_at = now() - interval '1 s' WHERE account_id = $1",
            gated.account_id,
        )
    await gated.parts.reviews.expire_due(100)
    assert (await decide(gated, gated.one, review)).status_code == 409
    assert (await decide(gated, gated.one)).status_code == 409
    await work(gated)
    assert gated.client.made == []


async def test_a_rejected_call_is_not_approved_afterwards(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    body = {"review": shown(review), "resume": True}
    assert (await gated.two.post(f"{gated.path}/reject", body)).status_code == 200
    assert (await decide(gated, gated.one, review)).status_code == 409
    assert (await decide(gated, gated.one)).status_code == 409
    await work(gated)
    assert gated.client.made == []


async def test_a_task_that_was_cancelled_was_not_rejected(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    await cancelled(gated)
    for body in ({}, {"review": shown(review)}):
        assert (await gated.one.post(f"{gated.path}/reject", body)).status_code == 409
    assert (await gated.review(gated.one))["state"] == "cancelled"


async def test_an_approval_is_not_confirmed_after_the_task_was_cancelled_or_failed(
    gated: GatedRun,
) -> None:
    review = await gated.review(gated.one)
    assert (await decide(gated, gated.one, review)).status_code == 200
    assert (await decide(gated, gated.two)).status_code == 200
    await gated.fail()
    assert (await decide(gated, gated.two)).status_code == 409
    # The very same decision, named by its review, was made.
    assert (await decide(gated, gated.two, review)).status_code == 200


async def test_a_decision_with_an_idempotency_key_is_made_once(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    body = {"review": shown(review)}
    path, headers = f"{gated.path}/approve", {"Idempotency-Key": "decide-once"}
    first = await gated.one.post(path, body, headers=headers)
    again = await gated.one.post(path, body, headers=headers)
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (first.json(), "true")
    other = await gated.one.post(path, {}, headers=headers)
    assert other.status_code == 409


async def test_the_review_shows_who_decided_and_with_which_key(gated: GatedRun) -> None:
    response = await decide(gated, gated.one, await gated.review(gated.one))
    by = response.json()["review"]["history"][0]["decidedBy"]
    assert (by["userId"], by["name"], by["via"]) == (
        ids.to_wire("user", gated.account_id),
        "Test",
        "key",
    )
    assert by["keyId"].startswith("key_")
    assert response.json()["review"]["items"][0]["decidedBy"] == by


async def test_the_digest_covers_exactly_the_documented_text(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    async with gated.parts.db.read(gated.account_id) as tx:
        row = await tx.fetchrow(
            "SELECT sealed, items FROM reviews WHERE account_id = $1", gated.account_id
        )
    assert row is not None
    assert digest(row["sealed"]) == review["digest"]
    [item] = row["items"]
    expected = {
        "server": {"id": ids.to_wire("mcp", gated.server.id), "revision": 1},
        "tool": "send",
        "arguments": ASKED,
    }
    sealed = canonical_json(expected | {"definitionHash": _definition_hash(item["sealed"])})
    assert item["sealed"] == sealed
    assert item["digest"] == digest(sealed)
    for name in ("account", "task", "run", "number", "gate", "nonce", "items"):
        assert f'"{name}":' in row["sealed"]


def _definition_hash(sealed: str) -> str:
    return sealed.partition('"definitionHash":"')[2][:64]


async def test_numbers_reach_the_tool_exactly_as_shown(service: Service) -> None:
    """Numbers that JSON libraries and databases like to change."""
    async with Composition(service.settings, pool_size=4) as parts:
        run = GatedRun(service, parts)
        await run.open()
        await run.begin()
        numbers = {"text": "x", "big": 2**70, "float": 1e16, "small": -0.0, "third": 1 / 3}
        await run.answer(numbers)
        assert (await decide(run, run.one, await run.review(run.one))).status_code == 200
        await work(run)
        [made] = run.client.made
        assert canonical_json(made.arguments) == canonical_json(numbers)


async def two_calls(service: Service, parts: Composition) -> GatedRun:
    run = GatedRun(service, parts)
    await run.open()
    await run.begin()
    await run.answer({"text": "a"}, {"text": "b"})
    return run


async def test_all_calls_are_not_approved_at_once_with_an_edit_that_was_not_seen(
    service: Service,
) -> None:
    async with Composition(service.settings, pool_size=4) as parts:
        run = await two_calls(service, parts)
        review = await run.review(run.two)
        first, second = (item["id"] for item in review["items"])
        edit = [{"id": first, "arguments": {"text": "edited"}}]
        assert (await decide(run, run.one, review, decisions=edit)).status_code == 200
        seen = current_review(await decide(run, run.two, review))
        assert seen["items"][0]["arguments"] == {"text": "edited"}
        await work(run)
        assert run.client.made == []
        assert (await decide(run, run.two, review, decisions=[{"id": second}])).status_code == 200
        await work(run)
        assert sorted(made.arguments["text"] for made in run.client.made) == ["b", "edited"]


async def test_arguments_that_are_sent_back_as_shown_are_not_an_edit(service: Service) -> None:
    async with Composition(service.settings, pool_size=4) as parts:
        run = GatedRun(service, parts)
        await run.open()
        await run.begin()
        await run.answer({"text": "a", "float": 1e16, "zero": -0.0, "big": 2**70})
        raw = (await run.one.get(f"{run.path}/review")).text
        assert '"float":1e16' in raw or '"float":1e+16' in raw
        review = await run.review(run.one)
        [item] = review["items"]
        same = [{"id": item["id"], "arguments": item["arguments"]}]
        decided = (await decide(run, run.one, review, decisions=same)).json()["review"]
        assert not decided["items"][0]["edited"]
        assert (await decide(run, run.two, review)).status_code == 200


async def test_two_answers_within_seconds_are_two_decisions(service: Service) -> None:
    async with Composition(service.settings, pool_size=4) as parts:
        run = GatedRun(service, parts)
        await run.open()
        await run.begin()
        for number in (1, 2):
            await run.answer({"question": f"{number}?"}, tool="ask_person")
            [item] = (await run.review(run.one))["items"]
            answer = [{"id": item["id"], "arguments": {"answer": "Yes."}}]
            assert (await decide(run, run.one, decisions=answer)).status_code == 200
            await run.begin()


async def test_a_repeated_approval_of_one_call_succeeds_after_the_others_were_rejected(
    service: Service,
) -> None:
    async with Composition(service.settings, pool_size=4) as parts:
        run = await two_calls(service, parts)
        review = await run.review(run.one)
        one = [{"id": review["items"][0]["id"]}]
        assert (await decide(run, run.one, review, decisions=one)).status_code == 200
        body = {"review": shown(review), "resume": True}
        assert (await run.two.post(f"{run.path}/reject", body)).status_code == 200
        assert (await decide(run, run.one, review, decisions=one)).status_code == 200
        twice = await decide(run, run.one, review, decisions=one * 2)
        assert twice.status_code == 200
        await work(run)
        assert [made.arguments for made in run.client.made] == [{"text": "a"}]


async def test_an_item_is_named_once(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    twice = [{"id": review["items"][0]["id"]}] * 2
    response = await decide(gated, gated.one, review, decisions=twice)
    assert response.status_code == 400


async def test_a_decision_after_the_expiry_is_refused_before_the_sweep(gated: GatedRun) -> None:
    review = await gated.review(gated.one)
    await gated.write(
        "UPDATE reviews SET expires_at = now() - interval '1 s' WHERE account_id = $1"
    )
    response = await decide(gated, gated.one, review)
    assert response.status_code == 409
    assert "has expired" in response.json()["error"]["message"]


async def test_a_tool_gate_shows_where_the_call_goes(gated: GatedRun) -> None:
    [item] = (await gated.review(gated.one))["items"]
    assert (item["serverUrl"], item["serverRevision"]) == (gated.server.url, 1)
    assert item["toolDescription"] == "Sends."


async def test_a_call_of_a_server_that_was_disconnected_cannot_be_approved(
    gated: GatedRun,
) -> None:
    review = await gated.review(gated.one)
    path = f"/api/mcp/{ids.to_wire('mcp', gated.server.id)}"
    assert (await gated.one.delete(path)).status_code == 200
    for body in ({}, {"decisions": [{"id": review["items"][0]["id"]}]}):
        refused = await decide(gated, gated.one, review, **body)
        assert refused.status_code == 409
        assert "was disconnected: peer" in refused.json()["error"]["message"]
    assert (await gated.review(gated.one))["state"] == "pending"
    rejected = await gated.one.post(f"{gated.path}/reject", {"resume": True})
    assert rejected.json()["task"]["status"] == "RUNNING"
