"""Another agent delegates work, follows it, and a person decides in between."""

from uuid import uuid4

import pytest
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import (
    InvalidParamsError,
    InvalidRequestError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict

from tests.a2a.client import (
    Binding,
    connected,
    details,
    message,
    output,
    refusal,
    state,
)
from tests.programs import new_key, signed_in
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person
from tests.tasks.world import patch


async def test_a_message_becomes_a_task_whose_result_is_returned_and_charged(
    runner: Runner, scripted: Scripted, person: Person, key: str, binding: Binding
) -> None:
    script = await scripted.script(says("Written.", inputTokens=1000))
    async with connected(runner.service, key, binding) as client:
        task = await client.send(message(f"Please. {script}", "writer", name="Write it"))
        assert (state(task), output(task)) == ("TASK_STATE_COMPLETED", "Written.")
        assert await client.get(task.id) == task
        assert [each.role for each in task.history] == [wire.ROLE_USER]
        assert task.history[0].parts[0].text == f"Please. {script}"
        assert not (await client.get(task.id, history=0)).history
        with pytest.raises(TaskNotCancelableError):
            await client.cancel(task.id)
    rest = await runner.task(person, task.id)
    assert (rest["output"], rest["status"], rest["name"]) == ("Written.", "COMPLETED", "Write it")
    shown = details(task)
    assert shown.items() <= rest.items()
    assert shown["usage"] == rest["usage"]
    transactions = (await person.get("/api/credits/transactions")).json()["transactions"]
    assert any(each.get("taskId") == task.id for each in transactions)


async def test_a_task_that_waits_for_a_person_says_where_and_no_message_decides(
    runner: Runner, scripted: Scripted, person: Person, key: str, binding: Binding
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": uuid4().hex})), says("It is sent."))
    async with connected(runner.service, key, binding) as client:
        task = await client.send(message(f"Please. {script}", "careful"))
        assert state(task) == "TASK_STATE_INPUT_REQUIRED"
        account = (await person.get("/api/me")).json()["account"]["id"]
        url = f"{runner.service.settings.public_url}/{account}/reviews/{task.id}"
        text, data = task.status.message.parts
        assert url in text.text
        assert data.data.struct_value["reviewUrl"] == url == details(task)["reviewUrl"]
        for words in ("approve", "Yes, go on."):
            with pytest.raises(
                UnsupportedOperationError, match="A message cannot approve or reject it"
            ) as error:
                await client.send(message(words, task=task.id, context=task.context_id))
            assert refusal(error.value)["reviewUrl"] == url
        with pytest.raises(InvalidParamsError, match="contextId"):
            await client.send(message("Yes", task=task.id, context="another"))
        review = (await person.get(f"/api/tasks/{task.id}/review")).json()["review"]
        assert (review["state"], review["history"]) == ("pending", [])

        states = []
        decided = False
        async for each in client.subscribe(task.id):
            if each.HasField("task"):
                assert state(each.task) == "TASK_STATE_INPUT_REQUIRED"
                await runner.approve(person, {"id": task.id})
                decided = True
            elif each.HasField("status_update"):
                states.append(state(each.status_update))
        assert decided
        assert states[-1] == "TASK_STATE_COMPLETED"
        assert output(await client.get(task.id)) == "It is sent."
        with pytest.raises(UnsupportedOperationError, match="COMPLETED"):
            await client.send(message("More", task=task.id))
        with pytest.raises(UnsupportedOperationError, match="no more updates"):
            [each async for each in client.subscribe(task.id)]


async def test_a_stream_begins_with_the_task_and_ends_with_its_result(
    runner: Runner, scripted: Scripted, person: Person, key: str, binding: Binding
) -> None:
    script = await scripted.script(calls(("desk__read", {"ref": "1"})), says("Read."))
    async with connected(runner.service, key, binding) as client:
        found = [each async for each in client.stream(message(f"Please. {script}", "writer"))]
    assert found[0].HasField("task")
    assert state(found[0].task) in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    updates = [each.status_update for each in found if each.HasField("status_update")]
    assert [each.WhichOneof("payload") for each in found[-2:]] == [
        "artifact_update",
        "status_update",
    ]
    assert state(updates[-1]) == "TASK_STATE_COMPLETED"
    assert {state(each) for each in updates[:-1]} <= {"TASK_STATE_WORKING"}
    assert found[-2].artifact_update.artifact.parts[0].text == "Read."
    rota = [MessageToDict(each.metadata)["rota"] for each in updates]
    sequences = [each["sequence"] for each in rota]
    assert sequences == sorted(set(sequences))
    assert "step.finished" in [each["event"] for each in rota]
    headers = {"Accept": "application/json"}
    events = (await person.get("/api/events", headers=headers)).json()["events"]
    seen = [each["type"] for each in events if each.get("taskId") == found[0].task.id]
    assert [each["event"] for each in rota] == seen[len(seen) - len(rota) :]


async def test_the_same_message_again_is_the_same_task(
    runner: Runner, person: Person, key: str, binding: Binding
) -> None:
    sent = message("Once", "writer", message_id="m-1", approveFirst=True)
    async with connected(runner.service, key, binding) as client:
        first = await client.send(sent)
        assert (await client.send(sent)).id == first.id
        assert (await anext(client.stream(sent))).task.id == first.id
        other = message("Twice", "writer", message_id="m-1", approveFirst=True)
        with pytest.raises(InvalidRequestError, match="messageId") as error:
            await client.send(other)
        assert refusal(error.value)["code"] == "CONFLICT"
        long = message("Once", "writer", message_id="m" * 1000, approveFirst=True)
        assert (await client.send(long)).id == (await client.send(long)).id
    assert (await person.get("/api/tasks")).json()["total"] == 2


async def test_cancelling_names_the_key_in_the_audit_trail(
    runner: Runner, person: Person, binding: Binding
) -> None:
    answer = await person.post("/api/keys", {"name": "Mine"})
    key_id, secret = answer.json()["key"]["id"], answer.json()["secret"]
    async with connected(runner.service, secret, binding) as client:
        task = await client.send(message("Hello", "writer", approveFirst=True))
        assert state(await client.cancel(task.id)) == "TASK_STATE_CANCELED"
        assert state(await client.cancel(task.id)) == "TASK_STATE_CANCELED"
    entries = (await person.get("/api/audit")).json()["entries"]
    own = {each["action"]: each for each in entries if each["resource"] == task.id}
    for action in ("task.created", "task.cancelled"):
        assert (own[action]["actor"], own[action]["via"]) == ("key", key_id)


async def test_structured_results_are_data(
    runner: Runner, scripted: Scripted, key: str, binding: Binding
) -> None:
    schema = {
        "type": "object",
        "properties": {"steps": {"type": "array"}, "total": {"type": "integer"}},
        "required": ["total"],
    }
    small = await scripted.script(says('{"steps": ["one", null], "total": 2}'))
    large = await scripted.script(says('{"total": 9007199254740993}'))
    nested = '{"steps":' + "[" * 55 + "]" * 55 + ',"total":1}'
    deep = await scripted.script(says(nested))
    async with connected(runner.service, key, binding) as client:
        task = await client.send(message(f"Count. {small}", "writer", outputSchema=schema))
        assert output(task) == {"steps": ["one", None], "total": 2}
        assert task.artifacts[0].parts[0].media_type == "application/json"
        task = await client.send(message(f"Count. {large}", "writer", outputSchema=schema))
        # Numbers of the protocol are floating point, so the exact one is text.
        assert output(task) == '{"total":9007199254740993}'
        assert task.artifacts[0].parts[0].media_type == "application/json"
        # Their parsers refuse messages that are nested so deeply.
        task = await client.send(message(f"Count. {deep}", "writer", outputSchema=schema))
        assert output(task) == nested


async def test_a_failed_task_says_why(
    runner: Runner, scripted: Scripted, person: Person, key: str, binding: Binding
) -> None:
    script = await scripted.script(says("Slow.", hold=True))
    async with connected(runner.service, key, binding) as client:
        task = await client.send(message(script, "writer"), wait=False)
        await until(lambda: scripted.asked(script))
        assert state(await client.get(task.id)) == "TASK_STATE_WORKING"
        stream = client.subscribe(task.id)
        assert (await anext(stream)).task.id == task.id
        assert state(await client.cancel(task.id)) == "TASK_STATE_CANCELED"
        rest = [each async for each in stream]
        assert state(rest[-1].status_update) == "TASK_STATE_CANCELED"
        await scripted.release(script)
        body = {"name": "A record", "status": "FAILED"}
        record = (await person.post("/api/tasks", body)).json()["task"]["id"]
        error = {"code": "IMPORT_FAILED", "message": "Row 17 has no date."}
        assert (await patch(person, record, error=error)).status_code == 200
        failed = await client.get(record)
        assert state(failed) == "TASK_STATE_FAILED"
        assert failed.status.message.parts[0].text == "IMPORT_FAILED: Row 17 has no date."


async def test_a_task_of_another_account_does_not_exist(
    runner: Runner, person: Person, key: str, binding: Binding
) -> None:
    stranger = await signed_in(runner.service)
    async with connected(runner.service, await new_key(stranger), binding) as client:
        foreign = (await client.send(message("Mine", "writer", approveFirst=True))).id
    async with connected(runner.service, key, binding) as client:
        for task_id in (foreign, "task_x", "nothing"):
            for attempt in (client.get(task_id), client.cancel(task_id)):
                with pytest.raises(TaskNotFoundError) as error:
                    await attempt
                assert refusal(error.value)["code"] == "NOT_FOUND"
            with pytest.raises(TaskNotFoundError):
                [each async for each in client.subscribe(task_id)]
            with pytest.raises(TaskNotFoundError):
                await client.send(message("Go on", task=task_id))
        assert (await client.list()).total_size == 0
