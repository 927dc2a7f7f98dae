"""How processes start: what they log, what they refuse, and what a worker reports about itself."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from pydantic import SecretStr

from rota.platform.http.server import listen
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.platform.start_log import place
from tests import forks
from tests.service import Service, environment, free_port

WORKER = ("rota.cli", "worker")


async def ended(command: str, settings: Settings, **variables: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a process that does not start."""
    variables = os.environ | environment(settings) | variables
    return await forks.ended("rota.cli", command, env=variables)


def events(file: Path) -> list[dict[str, Any]]:
    """Every line of the log is JSON."""
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_the_configuration_is_logged_without_secrets(probed: Service, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with probed.process(
        fresh=True,
        output=log,
        log_level="INFO",
        stripe_secret_key=SecretStr("sk_test_hush"),
        streams=77,
    ) as service:
        port = service.settings.port
    [starting] = [line for line in events(log) if line["event"] == "starting"]
    at = probed.database_url.rpartition("@")[2]
    assert starting["database"] == at.replace("localhost", "127.0.0.1")
    assert (starting["process"], starting["env"], starting["variant"]) == (
        "rota-serve",
        "test",
        "a",
    )
    assert starting["payments"] == "stripe"
    assert {"ROTA_STREAMS=77", f"ROTA_PORT={port}"} <= set(starting["settings"])
    assert "ROTA_STRIPE_SECRET_KEY=(set)" in starting["settings"]
    [ready] = [line for line in events(log) if line["event"] == "ready"]
    assert ready["port"] == port
    text = log.read_text()
    for secret in ("hush", probed.database_url.partition("@")[0].rpartition(":")[2]):
        assert secret not in text
    assert probed.settings.redis_url.get_secret_value().partition("@")[0][9:] not in text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@db.example.test:5432/rota?password=x", "db.example.test:5432/rota"),
        ("postgresql://u:p@a:1,b:2/rota", "a:1,b:2/rota"),
        ("postgresql://u:p@[2001:db8::1]:5432/rota", "[2001:db8::1]:5432/rota"),
        ("redis://:p@127.0.0.1:6379/3", "127.0.0.1:6379/3"),
        ("http://127.0.0.1:9/hush/v1", "127.0.0.1:9"),
        # Characters of a password that should have been escaped.
        ("postgresql://u:p/hush@db/rota", "unclear"),
        ("postgresql://u:p?hush@db/rota", "unclear"),
        ("postgresql://u:p#hush@db/rota", "unclear"),
        ("postgresql://[u:hush@db/rota", "unclear"),
        (None, ""),
    ],
)
def test_an_address_is_shown_without_its_login(url: str | None, shown: str) -> None:
    assert place(url).startswith(shown)
    assert "hush" not in place(url)


async def test_a_database_without_the_schema_is_refused_with_one_line(probed: Service) -> None:
    async with probed.owner() as owner:
        await owner.execute("CREATE DATABASE bare")
    url = SecretStr(probed.database_url.rpartition("/")[0] + "/bare")
    settings = probed.settings.model_copy(update={"port": free_port(), "database_url": url})
    code, output, error = await ended("serve", settings)
    async with probed.owner() as owner:
        await owner.execute("DROP DATABASE bare")
    assert (code, output) == (1, "")
    assert error == "The database schema is missing or older. Run: rota admin migrate\n"


@pytest.mark.parametrize("command", ["serve", "worker"])
async def test_an_invalid_setting_is_refused_with_one_line(command: str, probed: Service) -> None:
    code, output, error = await ended(command, probed.settings, ROTA_MODELS="gpt-5")
    assert (code, output) == (2, "")
    assert error.startswith("ROTA_MODELS: the value is not valid JSON: ")
    assert error.count("\n") == 1


async def test_a_worker_refuses_the_metrics_port_of_another_process(probed: Service) -> None:
    port = free_port()
    async with probed.process(metrics_port=port):
        settings = probed.settings.model_copy(update={"metrics_port": port})
        for command, variable in (("worker", "ROTA_WORKER_PORT"), ("serve", "ROTA_METRICS_PORT")):
            code, output, error = await ended(command, settings)
            assert code == 1
            assert "Traceback" not in output
            assert error.startswith(f"Cannot listen on 127.0.0.1, port {port} (Address already")
            assert variable in error
            assert error.count("\n") == 1


async def test_a_worker_reports_its_health_and_metrics(probed: Service, tmp_path: Path) -> None:
    port = free_port()
    async with probed.process(
        fresh=True, command=WORKER, port=port, worker_port=port, metrics_port=free_port()
    ) as worker:
        async with asyncio.timeout(30):
            while (ready := await worker.http.get("/health/ready")).status_code != 200:
                await asyncio.sleep(0.05)
        names = ("postgres", "schema", "secretKey", "temporal", "work", "redis", "models")
        assert set(ready.json()["checks"]) == set(names)
        # No models: it takes work, and says that it cannot run tasks.
        assert ready.json()["status"] == "degraded"
        assert "ROTA_MODELS has no model" in ready.json()["checks"]["models"]
        metrics = (await worker.http.get("/metrics")).text
        assert "rota_outbox_wait_seconds" in metrics
        assert 'rota_check_ok{check="postgres"} 1.0' in metrics
        assert 'rota_check_ok{check="models"} 0.0' in metrics
        assert (await worker.http.get("/docs")).status_code == 404


async def test_a_worker_that_waits_for_temporal_is_live_and_not_ready(
    probed: Service, tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "log"
    async with probed.process(
        command=WORKER,
        port=port,
        worker_port=port,
        temporal_address="127.0.0.1:1",
        output=log,
        log_level="INFO",
    ) as worker:
        ready = await worker.http.get("/health/ready")
        assert ready.status_code == 503
        assert "The worker is waiting for Temporal" in ready.json()["checks"]["work"]
        async with asyncio.timeout(30):
            while not any(line["event"] == "temporal_unavailable" for line in events(log)):
                await asyncio.sleep(0.05)


async def test_a_process_listens_on_every_address_of_its_host(probed: Service) -> None:
    async with probed.process(host="localhost") as service, httpx.AsyncClient() as http:
        url = f"http://localhost:{service.settings.port}/health/live"
        assert (await http.get(url)).status_code == 200


def test_an_address_that_the_machine_lacks_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    here = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    elsewhere = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [elsewhere, here])
    [opened] = listen("localhost", port, "ROTA_PORT")
    assert opened.getsockname() == ("127.0.0.1", port)
    opened.close()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [elsewhere])
    with pytest.raises(StartRefused, match="Set ROTA_WORKER_HOST to an address of this machine"):
        listen("elsewhere", port, "ROTA_WORKER_PORT")


def test_a_host_without_an_address_is_named() -> None:
    with pytest.raises(StartRefused, match="Set ROTA_HOST to an address of this machine"):
        listen("no host", free_port(), "ROTA_PORT")


async def test_a_password_that_is_not_escaped_is_not_shown(probed: Service) -> None:
    code, output, error = await ended(
        "serve", probed.settings, ROTA_DATABASE_URL="postgresql://rota:s3cret/x@db/rota"
    )
    assert code == 2
    assert "ROTA_DATABASE_URL cannot be read: percent-encode special characters" in error
    assert "s3cret" not in output + error


async def test_the_service_may_read_the_version_of_the_schema(probed: Service) -> None:
    connection = await asyncpg.connect(probed.database_url)
    async with connection.transaction():
        await connection.execute("SET LOCAL ROLE rota_app")
        assert await connection.fetchval("SELECT version_num FROM alembic_version")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("UPDATE alembic_version SET version_num = '1'")
    await connection.close()


async def test_a_probe_exits_with_the_health_of_a_url(probed: Service) -> None:
    base = f"http://127.0.0.1:{probed.settings.port}"
    for url, expected in (
        (f"{base}/health/ready", 0),
        (f"{base}/api/nothing", 1),
        ("http://127.0.0.1:1/", 1),
        ("nothing", 1),
    ):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rota.probe",
            url,
            env=os.environ | {"http_proxy": "http://127.0.0.1:1"},
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == expected
