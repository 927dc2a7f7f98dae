"""The image as `serve`, `worker` and operator commands, without rights and on a read-only root."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from rota.platform.settings import DEVELOPMENT_AUDIT_KEY
from rota_sdk import AsyncRota
from tests.packaging.containers.conftest import Office
from tests.packaging.containers.deployment import PYTHON, until_ready
from tests.packaging.containers.podman import Container
from tests.runs.runner import until
from tests.runs.scripted import Scripted, says
from tests.sdk.any_client import url_of
from tests.service import free_port

WRITE = "open('/opt/rota/new', 'w')"
PRODUCTION = {
    "ROTA_ENV": "production",
    "ROTA_PUBLIC_URL": "https://rota.example.test",
    "ROTA_OIDC_ISSUERS": '[{"issuer": "https://id.example.test", "clientId": "rota"}]',
    "ROTA_ALLOW_PLAINTEXT": "true",
}


def lines(container: Container) -> list[dict[str, object]]:
    """Every line of the log is JSON."""
    return [json.loads(line) for line in container.log().splitlines() if line]


async def test_nothing_is_writable_and_no_right_is_left(runner: Office) -> None:
    for container in (runner.deployment.container("serve"), runner.worker):
        status = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{container.pid}/status").read_text().splitlines()
        )
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[capabilities], 16) == 0
        assert status["NoNewPrivs"].strip() == "1"
        assert set(status["Uid"].split()) == {"65532"}
        refused = container.run(PYTHON, "-c", WRITE)
        assert "Read-only file system" in refused.stderr


async def test_serve_and_worker_are_ready_and_have_metrics(runner: Office) -> None:
    assert (await until_ready(runner.service.settings.port))["status"] == "ready"
    ready = await until_ready(runner.worker_port)
    assert ready["status"] == "ready", ready
    async with httpx.AsyncClient() as http:
        for port, metric in (
            (runner.service.settings.metrics_port, "rota_http_requests_total"),
            (runner.worker_port, "rota_outbox_wait_seconds"),
        ):
            assert metric in (await http.get(f"http://127.0.0.1:{port}/metrics")).text
    for container, port in (
        (runner.deployment.container("serve"), runner.service.settings.port),
        (runner.worker, runner.worker_port),
    ):
        probe = (PYTHON, "-m", "rota.probe", f"http://127.0.0.1:{port}/health/ready")
        assert container.run(*probe).returncode == 0


async def test_doctor_finds_nothing_wrong(runner: Office) -> None:
    done = await asyncio.to_thread(runner.worker.run, "rota", "admin", "doctor", "--json")
    report = json.loads(done.stdout)
    assert [each for each in report["checks"] if each["status"] != "ok"] == []
    assert done.returncode == 0


async def test_a_schema_that_is_up_to_date_is_left_alone(runner: Office) -> None:
    await runner.deployment.admin("migrate")
    assert (await until_ready(runner.service.settings.port))["status"] == "ready"


async def test_a_task_survives_the_end_of_its_worker(runner: Office, scripted: Scripted) -> None:
    person = await runner.newcomer()
    script = await scripted.script(says("Done after all.", holdAfter=1))
    async with AsyncRota(base_url=url_of(runner.service), api_key=person.token) as client:
        task = await client.tasks.create(name="T", agent="writer", input=f"Please. {script}")
        await until(lambda: scripted.asked(script))
        runner.worker.kill()
        runner.worker.start()
        await scripted.release(script)
        ended = await client.tasks.wait(task, timeout=120)
        assert (ended.status, ended.output) == ("COMPLETED", "Done after all.")
    await until_ready(runner.worker_port)


@pytest.mark.parametrize("command", ["serve", "worker"])
async def test_production_needs_an_audit_key(command: str, runner: Office) -> None:
    key = {"ROTA_AUDIT_KEY": DEVELOPMENT_AUDIT_KEY}
    refused = await runner.deployment.ended(command, changes=PRODUCTION | key)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "ROTA_AUDIT_KEY must be set in production: openssl rand -base64 32\n"


async def test_production_starts_logs_json_and_stops_when_asked(runner: Office) -> None:
    port, metrics = free_port(), free_port()
    ports = {"ROTA_PORT": str(port), "ROTA_METRICS_PORT": str(metrics)}
    async with runner.deployment.running("serve", "production", **PRODUCTION, **ports) as serve:
        assert (await until_ready(port))["status"] == "ready"
        assert await asyncio.to_thread(serve.stop) == 0
        events = [line["event"] for line in lines(serve)]
    assert events[0] == "starting"
    assert "ready" in events
