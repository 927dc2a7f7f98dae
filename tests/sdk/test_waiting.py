"""Waiting for a task: patient with the service, and not longer than asked."""

from typing import Any

import httpx
import pytest

from rota_sdk import _retries, errors
from rota_sdk._async import waiting as async_waiting
from rota_sdk._sync import waiting as sync_waiting
from tests.sdk.test_retries import CUT, TASK, Stub, refusal


def task(status: str) -> httpx.Response:
    return httpx.Response(200, json={"task": TASK["task"] | {"status": status}})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_retries, "backoff_s", lambda *_: 0.0)
    for module in (async_waiting, sync_waiting):
        monkeypatch.setattr(module, "FIRST_POLL_S", 0.0)


async def test_waiting_survives_a_service_that_is_away_for_a_while(kind: str) -> None:
    away: list[Any] = [CUT, httpx.ConnectError("refused"), refusal(503, "SERVICE_UNAVAILABLE")] * 4
    stub = Stub(*away, task("RUNNING"), *away, task("COMPLETED"))
    found = await stub.client(kind)(lambda c: c.tasks.wait("task_1"))
    assert found.status == "COMPLETED"


async def test_waiting_gives_up_at_last(kind: str) -> None:
    stub = Stub(*[CUT] * (_retries.RECONNECTS + 1))
    with pytest.raises(errors.APIConnectionError):
        await stub.client(kind)(lambda c: c.tasks.wait("task_1"))
    assert stub.outcomes == []
    for once in (
        Stub(refusal(404, "NOT_FOUND")).client(kind),
        Stub(CUT).client(kind, max_retries=0),
    ):
        with pytest.raises((errors.NotFoundError, errors.APIConnectionError)):
            await once(lambda c: c.tasks.wait("task_1"))


@pytest.mark.parametrize("options", [{}, {"max_retries": 0}, {"timeout": httpx.Timeout(None)}])
async def test_the_time_to_wait_limits_its_requests(kind: str, options: dict[str, Any]) -> None:
    stub = Stub(httpx.ReadTimeout("late"))
    with pytest.raises(errors.WaitTimeoutError, match="not known"):
        await stub.client(kind, **options)(lambda c: c.tasks.wait("task_1", timeout=0))
    [request] = stub.requests
    assert set(request.extensions["timeout"].values()) == {1.0}
    stub = Stub(task("COMPLETED"))
    await stub.client(kind)(lambda c: c.tasks.wait("task_1", timeout=7))
    assert 1.0 <= stub.requests[0].extensions["timeout"]["read"] <= 7
