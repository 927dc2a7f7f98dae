"""Streams and waits: who counts them, what ends them, and how they continue elsewhere."""

import asyncio
from typing import Any

import pytest
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import A2AError, InvalidRequestError

from rota.a2a import handler
from tests.a2a.client import Binding, Delegate, connected, message, output, refusal, state
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, says
from tests.service import Person, Service


async def _held(client: Delegate, scripted: Scripted) -> tuple[str, wire.Task]:
    """A task whose model does not answer until it is released."""
    script = await scripted.script(says("Done.", hold=True))
    task = await client.send(message(script, "writer"), wait=False)
    await until(lambda: scripted.asked(script))
    return script, task


async def _streams(service: Service, count: int) -> None:
    async def seen() -> str:
        return (await service.http.get("/metrics")).text

    await until(seen, lambda text: f"rota_event_streams {count}.0" in text, deadline_s=30)


async def test_a_stream_that_was_cut_continues_at_another_process(
    runner: Runner, scripted: Scripted, key: str
) -> None:
    script = await scripted.script(says("Done.", hold=True))
    async with (
        runner.service.process(metrics_port=None) as doomed,
        connected(doomed, key, "JSONRPC") as client,
    ):
        stream = client.stream(message(script, "writer"))
        task = (await anext(stream)).task
        await until(lambda: scripted.asked(script))
        assert doomed.running is not None
        doomed.running.kill()
        with pytest.raises(A2AClientError):
            [each async for each in stream]
    async with connected(runner.service, key, "HTTP+JSON") as client:
        resumed = client.subscribe(task.id)
        assert state((await anext(resumed)).task) == "TASK_STATE_WORKING"
        await scripted.release(script)
        rest = [each async for each in resumed]
        assert rest[-2].artifact_update.artifact.parts[0].text == "Done."
        assert state(rest[-1].status_update) == "TASK_STATE_COMPLETED"


async def test_streams_of_one_task_get_the_same_events(
    runner: Runner, scripted: Scripted, key: str, binding: Binding
) -> None:
    async with connected(runner.service, key, binding) as client:
        script, task = await _held(client, scripted)
        streams = [client.subscribe(task.id) for _ in range(3)]
        for each in streams:
            assert (await anext(each)).task.id == task.id
        # One that closes does not disturb the others.
        await streams.pop().aclose()  # type: ignore[attr-defined]
        await scripted.release(script)
        first, second = [[event async for event in each] for each in streams]
        assert first == second
        assert state(first[-1].status_update) == "TASK_STATE_COMPLETED"


async def test_a_client_that_disconnects_ends_its_stream(
    runner: Runner, scripted: Scripted, key: str, binding: Binding
) -> None:
    async with connected(runner.service, key, binding) as client:
        script, task = await _held(client, scripted)
        await _streams(runner.service, 0)
        stream = client.subscribe(task.id)
        await anext(stream)
        await _streams(runner.service, 1)
        await stream.aclose()  # type: ignore[attr-defined]
        await _streams(runner.service, 0)
        other = await scripted.script(says("Done.", hold=True))
        waiting = asyncio.create_task(client.send(message(other, "writer")))
        await _streams(runner.service, 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await _streams(runner.service, 0)
    for each in (script, other):
        await scripted.release(each)


async def test_a_revoked_key_ends_its_streams(
    runner: Runner, scripted: Scripted, person: Person, binding: Binding
) -> None:
    answer = (await person.post("/api/keys", {"name": "Soon revoked"})).json()
    async with connected(runner.service, answer["secret"], binding) as client:
        script, task = await _held(client, scripted)
        stream = client.subscribe(task.id)
        await anext(stream)
        await person.delete(f"/api/keys/{answer['key']['id']}")
        async with asyncio.timeout(30):
            with pytest.raises(A2AError, match="revoked") as error:
                [each async for each in stream]
        assert refusal(error.value)["code"] == "AUTHENTICATION_ERROR"
    await scripted.release(script)


async def test_streams_count_and_nothing_is_created_without_a_place(
    runner: Runner, scripted: Scripted, person: Person, key: str
) -> None:
    binding: Binding = "HTTP+JSON"
    async with connected(runner.service, key, binding) as client:
        script, task = await _held(client, scripted)
    async with (
        runner.service.process(streams_per_account=1) as small,
        connected(small, key, binding) as client,
    ):
        stream = client.subscribe(task.id)
        await anext(stream)
        total = (await person.get("/api/tasks")).json()["total"]
        attempts: list[Any] = [
            client.send(message("Hello", "writer")),
            anext(client.stream(message("Hello", "writer"))),
            anext(client.subscribe(task.id)),
        ]
        for attempt in attempts:
            with pytest.raises(InvalidRequestError) as error:
                await attempt
            shown = refusal(error.value)
            assert (shown["code"], shown["retryAfterSeconds"]) == ("RATE_LIMITED", "5")
        assert (await person.get("/api/tasks")).json()["total"] == total
        assert small.running is not None
        # A service that stops ends its streams. The client then subscribes elsewhere.
        small.running.terminate()
        async with asyncio.timeout(60):
            assert not [each async for each in stream if each.HasField("artifact_update")]
    await scripted.release(script)


async def test_a_call_that_waits_for_too_long_returns_the_task_as_it_is(
    runner: Runner,
    scripted: Scripted,
    key: str,
    binding: Binding,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handler, "MAX_WAIT_S", 0.1)
    script = await scripted.script(says("Late.", hold=True))
    async with connected(runner.service, key, binding) as client:
        sent = message(script, "writer")
        task = await client.send(sent)
        assert state(task) in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
        await until(lambda: scripted.asked(script))
        await scripted.release(script)
        monkeypatch.undo()
        assert output(await client.send(sent)) == "Late."
