"""The service as a process: shutdown, logs and metrics."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import forks
from tests.assertions import assert_error
from tests.service import Service, environment, free_port

PROBE = ("tests.platform.probe",)


async def until_refused(service: Service) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", service.settings.port)
            # A connection still in the queue of the socket when it closes is reset.
            except (ConnectionRefusedError, ConnectionResetError):
                return
            writer.close()
            await asyncio.sleep(0.01)


def stop(service: Service) -> None:
    assert service.running is not None
    service.running.send_signal(signal.SIGTERM)


async def exit_code(service: Service) -> int:
    assert service.running is not None
    async with asyncio.timeout(15):
        return await service.running.wait()


async def test_shutdown_finishes_requests_in_progress_and_refuses_new_ones(
    probed: Service, tmp_path: Path
) -> None:
    file = tmp_path / "finish"
    async with probed.process(fresh=True, command=PROBE) as service:
        async with service.http.stream("GET", f"/api/probe/until?file={file}") as response:
            assert response.status_code == 200
            pieces = response.aiter_bytes()
            assert await anext(pieces) == b"begun,"
            stop(service)
            await until_refused(service)
            file.touch()
            assert b"".join([piece async for piece in pieces]) == b"done"
        assert await exit_code(service) == 0


async def test_an_idle_service_stops_immediately(probed: Service) -> None:
    async with probed.process(command=PROBE) as service:
        assert (await service.http.get("/api/auth/config")).status_code == 200
        stop(service)
        assert await exit_code(service) == 0


async def test_a_request_that_exceeds_the_grace_period_gets_503(probed: Service) -> None:
    async with probed.process(command=PROBE, shutdown_grace_s=1) as service:
        request = asyncio.create_task(service.http.get("/api/probe/forever"))
        async with asyncio.timeout(10):
            # The request has started when the limiter has counted it.
            response = await service.http.get("/api/auth/config")
            while int(response.headers["RateLimit-Remaining"]) > 600 - 3 and not request.done():
                response = await service.http.get("/api/auth/config")
        stop(service)
        response = await request
        assert_error(response, 503, "SERVICE_UNAVAILABLE", "/api/probe/forever")
        assert await exit_code(service) == 0


async def test_a_port_in_use_is_an_error(probed: Service) -> None:
    code, _, error = await forks.ended(*PROBE, env=os.environ | environment(probed.settings))
    assert code == 1
    assert error.splitlines() == [
        f"Cannot listen on 127.0.0.1, port {probed.settings.port} (Address already in use). Set "
        "ROTA_PORT to a port that is free, or stop the process that uses it."
    ]


@asynccontextmanager
async def logged(
    probed: Service, file: Path
) -> AsyncIterator[tuple[Service, list[dict[str, Any]]]]:
    """A process, and its log lines after it has exited."""
    lines: list[dict[str, Any]] = []
    async with probed.process(command=PROBE, output=file, log_level="INFO") as service:
        yield service, lines
        stop(service)
        assert await exit_code(service) == 0
    lines += [json.loads(line) for line in file.read_bytes().splitlines()]


async def test_each_request_is_logged_as_one_json_line(probed: Service, tmp_path: Path) -> None:
    ada = await probed.sign_in()
    async with logged(probed, tmp_path / "log") as (service, lines):
        headers = ada.auth | {"X-Request-Id": "mine"}
        assert (await service.http.get("/api/tasks?q=secret", headers=headers)).status_code == 200
        missing = {"X-Request-Id": "lost"}
        assert (await service.http.get("/api/nothing", headers=missing)).status_code == 404
    (line,) = [line for line in lines if line.get("request_id") == "mine"]
    assert line["event"] == "request"
    assert line["level"] == "info"
    assert (line["method"], line["route"], line["path"]) == ("GET", "/api/tasks", "/api/tasks")
    assert (line["status"], line["account"]) == (200, f"acct_{ada.user_id.hex}")
    assert line["ms"] > 0
    assert line["timestamp"].endswith("Z")
    (line,) = [line for line in lines if line.get("request_id") == "lost"]
    assert (line["route"], line["status"], line["account"]) == ("unmatched", 404, None)
    assert all("request_id" in line for line in lines if "path" in line)


async def test_an_exception_is_logged_with_its_traceback_and_request_id(
    probed: Service, tmp_path: Path
) -> None:
    async with logged(probed, tmp_path / "log") as (service, lines):
        await service.http.get("/api/probe/crash", headers={"X-Request-Id": "crash"})
        await service.http.get("/api/probe/database", headers={"X-Request-Id": "database"})
    for request_id, cause in (("crash", "internal details"), ("database", "secret_table")):
        failure, request = [line for line in lines if line.get("request_id") == request_id]
        assert (failure["event"], failure["level"]) == ("request_failed", "error")
        assert cause in failure["exception"]
        assert (request["event"], request["status"]) == ("request", 500)


async def test_the_log_contains_no_secrets(probed: Service, tmp_path: Path) -> None:
    ada = await probed.sign_in()
    key = (await ada.post("/api/keys", {"name": "log"})).json()["secret"]
    id_token = await probed.id_token("log")
    log = tmp_path / "log"
    async with logged(probed, log) as (service, lines):
        for secret in (ada.token, key, id_token, "opaque-0123456789-secret"):
            bearer = {"Authorization": f"Bearer {secret}"}
            await service.http.get("/api/me", headers=bearer)
            # The message of this exception contains the header.
            await service.http.get("/api/probe/crash", headers=bearer)
            if not secret.startswith("opaque"):
                await service.http.get(f"/api/keys/{secret}", headers=bearer)
                await service.http.get(f"/api/me?token={secret}", headers=bearer)
                await service.http.get("/api/me", headers=bearer | {"X-Request-Id": secret[:128]})
                await service.http.get(f"/{secret}", headers={"Cookie": secret})
        await service.http.post("/api/auth/session", json={"idToken": id_token})
    assert len(lines) > 25
    text = log.read_text()
    for secret in (ada.token, key, id_token, "opaque-0123456789-secret"):
        assert secret not in text
        assert secret[:40] not in text
    assert key[5:30] not in text
    password = probed.database_url.partition("@")[0].rpartition(":")[2]
    assert password not in text
    assert "[hidden]" in text


async def test_metrics_count_requests_by_route(probed: Service) -> None:
    def value(text: str, name: str) -> float:
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    name = 'rota_http_requests_total{method="GET",route="/api/auth/config",status="200"}'
    before = (await probed.http.get("/metrics")).text
    await probed.http.get("/api/auth/config")
    response = await probed.http.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain")
    assert value(response.text, name) == value(before, name) + 1
    assert 'rota_http_request_seconds_bucket{le="0.1",route="/api/auth/config"}' in response.text
    # Its value depends on how fast Redis answers.
    assert "\nrota_limiter_degraded " in response.text
    assert "process_cpu_seconds_total" in response.text


async def test_metrics_are_on_a_separate_port_if_one_is_set(probed: Service) -> None:
    port = free_port()
    async with probed.process(metrics_port=port) as service:
        assert_error(await service.http.get("/metrics"), 404, "NOT_FOUND", "/metrics")
        async with httpx.AsyncClient() as http:
            async with asyncio.timeout(30):
                while (
                    "rota_check_ok{"
                    not in (response := await http.get(f"http://127.0.0.1:{port}/metrics")).text
                ):
                    await asyncio.sleep(0.05)
        assert response.status_code == 200
        assert "rota_http_requests_total" in response.text


async def test_an_unknown_setting_is_logged_at_start_with_the_nearest_name(
    probed: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_SESSION_IDLE_DAY", "hush")
    log = tmp_path / "log"
    async with probed.process(output=log):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    [warning] = [line for line in lines if line["event"] == "unknown_setting"]
    assert warning["level"] == "warning"
    assert warning["name"] == "ROTA_SESSION_IDLE_DAY"
    assert warning["did_you_mean"] == "ROTA_SESSION_IDLE_DAYS"
    assert "hush" not in log.read_text()
