"""Waits: who counts them, what ends them, and how they continue elsewhere."""

import asyncio
from typing import Any

import httpx
import pytest

from rota.events.stream import OPEN
from tests.mcp_server.clients import Generation, call, connected, envelope, refusal
from tests.programs import new_key, signed_in
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, says
from tests.service import Person, Service

Task = dict[str, Any]


async def _held(client: Any, scripted: Scripted) -> tuple[str, Task]:
    """A task whose model does not answer until it is released."""
    script = await scripted.script(says("Done.", hold=True))
    task = (await call(client, "create_task", agent="writer", input=script))["task"]
    await until(lambda: scripted.asked(script))
    return script, task


async def _open_waits(count: int) -> None:
    async def open_now() -> float:
        return float(OPEN._value.get())

    await until(open_now, lambda seen: seen == count, deadline_s=30)


async def _has_open_wait(service: Service) -> bool:
    return "rota_event_streams 1.0" in (await service.http.get("/metrics")).text


async def test_a_client_that_disconnects_ends_its_wait(
    runner: Runner, scripted: Scripted, key: str, generation: Generation
) -> None:
    async with connected(runner.service, key, generation) as client:
        script, task = await _held(client, scripted)
    await _open_waits(0)
    headers, body = envelope(
        generation,
        "tools/call",
        {"name": "wait_for_task", "arguments": {"taskId": task["id"], "waitSeconds": 300}},
    )
    headers["Authorization"] = f"Bearer {key}"
    async with httpx.AsyncClient(base_url=str(runner.service.http.base_url)) as http:
        waiting = asyncio.create_task(http.post("/mcp", headers=headers, json=body, timeout=300))
        await _open_waits(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await _open_waits(0)
    await scripted.release(script)


async def test_a_revoked_key_ends_its_waits(
    runner: Runner, scripted: Scripted, person: Person, generation: Generation
) -> None:
    answer = (await person.post("/api/keys", {"name": "Soon revoked"})).json()
    async with connected(runner.service, answer["secret"], generation) as client:
        script, task = await _held(client, scripted)
        await _open_waits(0)
        waiting = asyncio.create_task(
            refusal(client, "wait_for_task", taskId=task["id"], waitSeconds=300)
        )
        await _open_waits(1)
        await person.delete(f"/api/keys/{answer['key']['id']}")
        async with asyncio.timeout(30):
            error = await waiting
        assert (error["code"], error["status"]) == ("AUTHENTICATION_ERROR", 401)
    await scripted.release(script)


async def test_waits_count_as_streams_of_the_account(
    runner: Runner, scripted: Scripted, person: Person, key: str, generation: Generation
) -> None:
    async with connected(runner.service, key, generation) as client:
        script, task = await _held(client, scripted)
    async with (
        runner.service.process(streams_per_account=1) as small,
        connected(small, key, generation) as client,
    ):
        first = asyncio.create_task(
            call(client, "wait_for_task", taskId=task["id"], waitSeconds=300)
        )

        await until(lambda: _has_open_wait(small))
        error = await refusal(client, "wait_for_task", taskId=task["id"], waitSeconds=0)
        assert (error["code"], error["retryAfterSeconds"]) == ("RATE_LIMITED", 5)
        await scripted.release(script)
        assert (await first)["task"]["status"] == "COMPLETED"


async def test_a_wait_continues_at_another_process_after_its_own_was_killed(
    runner: Runner, scripted: Scripted, key: str, generation: Generation
) -> None:
    async with connected(runner.service, key, generation) as client:
        script, task = await _held(client, scripted)
        before = await call(client, "wait_for_task", taskId=task["id"], waitSeconds=0)
    async with runner.service.process(metrics_port=None) as doomed:
        wait = {
            "taskId": task["id"],
            "afterSequence": before["lastSequence"],
            "waitSeconds": 300,
        }
        headers, body = envelope(
            generation, "tools/call", {"name": "wait_for_task", "arguments": wait}
        )
        headers["Authorization"] = f"Bearer {key}"
        waiting = asyncio.create_task(
            doomed.http.post("/mcp", headers=headers, json=body, timeout=300)
        )
        await until(lambda: _has_open_wait(doomed))
        assert doomed.running is not None
        doomed.running.kill()
        with pytest.raises(httpx.TransportError):
            await waiting
    async with connected(runner.service, key, generation) as client:
        resumed = asyncio.create_task(call(client, "wait_for_task", **wait))
        await scripted.release(script)
        ended = await resumed
        assert (ended["task"]["output"], ended["timedOut"]) == ("Done.", False)


async def test_a_service_that_stops_ends_waits_with_an_answer(
    runner: Runner, scripted: Scripted, key: str, generation: Generation
) -> None:
    async with connected(runner.service, key, generation) as client:
        script, task = await _held(client, scripted)
    async with (
        runner.service.process() as stopping,
        connected(stopping, key, generation) as client,
    ):
        # The client asks for it after the first call otherwise, when the service has stopped.
        await client.list_tools()
        waiting = asyncio.create_task(
            call(client, "wait_for_task", taskId=task["id"], waitSeconds=300)
        )
        await until(lambda: _has_open_wait(stopping))
        assert stopping.running is not None
        stopping.running.terminate()
        async with asyncio.timeout(60):
            answer = await waiting
        assert answer["timedOut"] is True
    await scripted.release(script)


async def test_the_key_of_a_company_works_in_the_company(office: Service) -> None:
    owner, stranger = await signed_in(office), await signed_in(office)
    company = (await owner.post("/api/companies", {"name": "Ours"})).json()["account"]["id"]
    headers = {"X-Service-Account": company}
    answer = await owner.post("/api/keys", {"name": "Company's"}, headers=headers)
    assert answer.status_code == 201, answer.text
    body = {"name": "A record", "status": "WAITING_APPROVAL"}
    task = (await owner.post("/api/tasks", body, headers=headers)).json()["task"]
    async with connected(office, answer.json()["secret"]) as client:
        assert company in (await call(client, "get_task", taskId=task["id"]))["reviewUrl"]
    async with connected(office, await new_key(stranger)) as client:
        assert (await refusal(client, "get_task", taskId=task["id"]))["status"] == 404


async def test_a_wait_that_continues_after_the_end_reports_what_was_missed(
    runner: Runner, scripted: Scripted, person: Person, key: str, generation: Generation
) -> None:
    script = await scripted.script(says("Done."))
    async with connected(runner.service, key, generation) as client:
        task = (await call(client, "create_task", agent="writer", input=script))["task"]
        await runner.until(person, task, "COMPLETED")
        reports: dict[float, str] = {}

        async def report(progress: float, total: float | None, message: str | None) -> None:
            reports[progress] = (message or "").split()[0]

        waited = await client.call_tool(
            "wait_for_task", {"taskId": task["id"], "afterSequence": 0}, progress_callback=report
        )

        async def seen() -> dict[float, str]:
            return reports

        # The client calls back in tasks of their own, which can run after the result.
        await until(seen, lambda found: "task.completed" in found.values())
        listed = await person.get("/api/events", headers={"Accept": "application/json"})
        events = [each for each in listed.json()["events"] if each["taskId"] == task["id"]]
        assert [reports[at] for at in sorted(reports)] == [each["type"] for each in events]
        answer: dict[str, Any] = waited.structured_content or {}
        assert answer["lastSequence"] == events[-1]["sequence"]
        # Nothing is missing after it.
        again = await call(
            client, "wait_for_task", taskId=task["id"], afterSequence=answer["lastSequence"]
        )
        assert again["timedOut"] is False
