"""Contexts, and pages of tasks."""

import pytest
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import InvalidParamsError, UnsupportedOperationError

from tests.a2a.client import Binding, Delegate, connected, message, refusal, rest, rpc
from tests.runs.runner import Runner
from tests.service import Person, Service
from tests.tasks.world import patch


async def test_pages_continue_after_the_last_task_while_new_ones_come(
    runner: Runner, person: Person, key: str, binding: Binding
) -> None:
    async with connected(runner.service, key, binding) as client:

        async def create(number: int) -> str:
            sent = message(f"Task {number}", "writer", approveFirst=True, context="ours")
            return (await client.send(sent)).id

        created = [await create(number) for number in range(5)]
        first = await client.list(page_size=2)
        assert ([each.id for each in first.tasks], first.total_size) == (created[:2:-1], 5)
        created.append(await create(5))
        second = await client.list(page_size=2, page_token=first.next_page_token)
        assert [each.id for each in second.tasks] == created[2:0:-1]
        last = await client.list(page_size=2, page_token=second.next_page_token)
        assert [each.id for each in last.tasks] == created[:1]
        assert (last.next_page_token, last.total_size, last.page_size) == ("", 6, 2)
        assert not last.tasks[0].history
        assert (await client.list(history_length=1)).tasks[0].history
        everything = await client.list(context_id="ours")
        assert (len(everything.tasks), everything.page_size) == (6, 50)
        assert (await client.list(context_id="theirs")).total_size == 0


async def all_pages(client: Delegate, context: str, size: int) -> list[str]:
    """The tasks of a context, read in pages of this size."""
    found, token = [], ""
    while True:
        page = await client.list(context_id=context, page_size=size, page_token=token)
        assert len(page.tasks) <= size
        found += [each.id for each in page.tasks]
        if not (token := page.next_page_token):
            return found


async def test_a_task_without_a_context_is_a_context_of_its_own(
    runner: Runner, person: Person, key: str, binding: Binding
) -> None:
    async with connected(runner.service, key, binding) as client:
        older = [
            await client.send(message(text, "writer", approveFirst=True))
            for text in ("Before", "Just before")
        ]
        first = await client.send(message("One", "writer", approveFirst=True))
        assert first.context_id == first.id
        more = [
            await client.send(message(text, "writer", approveFirst=True, context=first.context_id))
            for text in ("Two", "Three")
        ]
        assert {each.context_id for each in more} == {first.id}
        await client.send(message("Apart", "writer", approveFirst=True))
        found = await client.list(context_id=first.id)
        wanted = [more[1].id, more[0].id, first.id]
        assert ([each.id for each in found.tasks], found.total_size) == (wanted, 3)
        assert await all_pages(client, first.id, 1) == wanted
        # Older tasks join the context, so its first task is not the last on the list.
        for each in older:
            changed = await patch(person, each.id, projectId=first.id)
            assert changed.status_code == 200, changed.text
        wanted += [older[1].id, older[0].id]
        for size in range(1, 7):
            assert await all_pages(client, first.id, size) == wanted
    assert (await person.get(f"/api/tasks/{first.id}")).json()["task"]["projectId"] is None
    assert (await person.get(f"/api/tasks/{more[0].id}")).json()["task"]["projectId"] == first.id


async def test_lists_by_state(runner: Runner, key: str, binding: Binding) -> None:
    async with connected(runner.service, key, binding) as client:
        waiting = await client.send(message("One", "writer", approveFirst=True))
        cancelled = await client.send(message("Two", "writer", approveFirst=True))
        await client.cancel(cancelled.id)
        for state, wanted in (
            (wire.TASK_STATE_INPUT_REQUIRED, [waiting.id]),
            (wire.TASK_STATE_CANCELED, [cancelled.id]),
            (wire.TASK_STATE_REJECTED, []),
            (wire.TASK_STATE_WORKING, []),
        ):
            found = await client.list(status=state)
            assert ([each.id for each in found.tasks], found.total_size) == (wanted, len(wanted))
            own = await client.list(status=state, context_id=waiting.id)
            assert {each.id for each in own.tasks} == {waiting.id} & set(wanted)


async def test_wrong_filters_are_named(runner: Runner, key: str, binding: Binding) -> None:
    async with connected(runner.service, key, binding) as client:
        for filters in (
            {"page_size": 0},
            {"page_size": 101},
            {"page_token": "x"},
            {"page_token": "ÿ"},
            {"history_length": -1},
        ):
            with pytest.raises(InvalidParamsError, match="The request is not valid") as error:
                await client.list(**filters)
            assert refusal(error.value)["code"] == "VALIDATION_ERROR"
        with pytest.raises(UnsupportedOperationError, match="GET /api/events"):
            await client.list(status_timestamp_after={"seconds": 1})


@pytest.mark.parametrize("status", ["COMPLETED", "completed", "TASK_STATE_DONE"])
async def test_a_state_that_does_not_exist_is_refused_and_lists_nothing(
    endpoints: Service, secret: str, status: str
) -> None:
    for answer in (
        await rest(endpoints, secret, f"/tasks?status={status}"),
        await rpc(endpoints, secret, "ListTasks", {"status": status}),
    ):
        assert "status: must be one of TASK_STATE_SUBMITTED" in answer.json()["error"]["message"]
    for none in ("", "TASK_STATE_UNSPECIFIED"):
        assert (await rest(endpoints, secret, f"/tasks?status={none}")).status_code == 200


async def test_artifacts_are_listed_on_request_only(
    runner: Runner, person: Person, key: str
) -> None:
    body = {"name": "A record", "status": "COMPLETED", "output": "Done."}
    await person.post("/api/tasks", body)
    [short] = (await rest(runner.service, key)).json()["tasks"]
    assert "artifacts" not in short
    [whole] = (await rest(runner.service, key, "/tasks?includeArtifacts=true")).json()["tasks"]
    [part] = whole["artifacts"][0]["parts"]
    assert (part["text"], part["mediaType"]) == ("Done.", "text/plain")


async def test_a_long_page_cuts_results_and_says_so(
    runner: Runner, person: Person, key: str
) -> None:
    for _ in range(30):
        body = {"name": "A record", "status": "COMPLETED", "output": "x" * 50_000}
        assert (await person.post("/api/tasks", body)).status_code == 201
    answer = await rest(runner.service, key, "/tasks?includeArtifacts=true")
    artifact = answer.json()["tasks"][0]["artifacts"][0]
    assert artifact["metadata"] == {"rota": {"truncated": True}}
    assert 0 < len(artifact["parts"][0]["text"]) < 50_000
