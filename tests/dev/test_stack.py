"""The stack as tests use it: starting, crashing and restarting components, and external servers."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import asyncpg
import httpx
import psutil
import pytest
import redis.asyncio

from rota.dev import ports
from rota.dev import stack as stack_module
from rota.dev.components import WITHOUT_WEIGHTS, Model, Redis, Service
from rota.dev.directory import DataDirectory, DirectoryInUseError
from rota.dev.processes import Component, ComponentError, ComponentState, Site, Status
from rota.dev.stack import Stack

DEADLINE_S = 20


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    data = tmp_path_factory.mktemp("stack") / "data"
    async with Stack(data, components=("postgres", "redis"), durable=False) as stack:
        yield stack


class Failing(Component):
    """A command that prints the reason and exits."""

    name = "failing"

    def command(self) -> Sequence[str]:
        return [sys.executable, "-c", "import sys; sys.exit('the license has expired')"]

    async def check(self) -> None:
        raise ConnectionError


async def test_row_security_applies_to_the_service_role(stack: Stack) -> None:
    connection = await asyncpg.connect(stack.endpoints.database_url)
    role = await connection.fetchrow("SELECT * FROM pg_roles WHERE rolname = current_user")
    encoding = await connection.fetchval("SHOW server_encoding")
    most = await connection.fetchval("SHOW max_connections")
    await connection.close()
    assert role is not None
    assert (role["rolname"], role["rolsuper"], role["rolbypassrls"]) == ("rota", False, False)
    assert (role["rolcreaterole"], role["rolcreatedb"]) == (True, True)
    assert (encoding, most) == ("UTF8", "200")


async def test_connections_without_the_password_are_refused(stack: Stack) -> None:
    for user in ("postgres", "rota"):
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                f"postgresql://{user}:guess@127.0.0.1:{stack.postgres.port}/postgres"
            )
    async with redis.asyncio.from_url(f"redis://127.0.0.1:{stack.redis.port}/0") as client:
        with pytest.raises(redis.exceptions.AuthenticationError):
            await client.ping()
    secrets = list(stack.directory.path.glob("*.password"))
    assert {file.name for file in secrets} >= {"postgres.password", "rota.password"}
    assert {file.stat().st_mode & 0o777 for file in secrets} == {0o600}


async def test_a_killed_database_restarts_on_its_port_with_all_committed_data(
    stack: Stack,
) -> None:
    port = stack.postgres.port
    connection = await asyncpg.connect(stack.endpoints.database_url)
    await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

    await stack.postgres.kill()
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await connection.fetchval("SELECT 1")
    await stack.postgres.start()

    assert stack.postgres.port == port
    connection = await asyncpg.connect(stack.endpoints.database_url)
    assert await connection.fetchval("SELECT answer FROM kept") == 42
    await connection.close()


async def test_a_pid_file_with_the_id_of_another_process_does_not_block_the_database(
    stack: Stack,
) -> None:
    await stack.postgres.kill()
    file = stack.postgres.cluster / "postmaster.pid"
    owner = file.stat()
    other = subprocess.Popen(["sleep", "600"], user=owner.st_uid)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")

    await stack.postgres.start()

    assert other.poll() is None
    other.kill()
    other.wait()


async def test_the_supervisor_restarts_a_component_that_crashes(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_module, "BACKOFF_S", 0.01)
    seen: asyncio.Queue[ComponentState] = asyncio.Queue()
    monkeypatch.setattr(stack, "_on_change", seen.put_nowait)
    supervisor = asyncio.create_task(stack.supervise())
    server = next(
        process
        for process in psutil.Process().children(recursive=True)
        if process.name() == "redis-server" and str(stack.redis.port) in process.cmdline()[0]
    )

    server.send_signal(signal.SIGKILL)

    async with asyncio.timeout(DEADLINE_S):
        states = [await seen.get() for _ in range(3)]
    assert [state.status for state in states] == [Status.CRASHED, Status.STARTING, Status.READY]
    assert states[0].detail == f"exited with code {128 + signal.SIGKILL}"
    assert states[2].detail == "restart 1 of 3"
    supervisor.cancel()


async def test_a_component_that_keeps_crashing_stops_the_supervisor_with_the_reason(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_module, "BACKOFF_S", 0.01)
    stub = str(Path(__file__).with_name("stub_service.py"))
    port = ports.find()
    environment = stack.environment() | {"ROTA_PORT": str(port)}
    service = Service(stack.site, port, (sys.executable, stub, "crash"), environment)
    # It exits after one response, so the start succeeds or fails depending on timing.
    try:
        await stack.add(service)
    except ComponentError:
        stack._crashed.put_nowait(service.name)
    with pytest.raises(ComponentError, match="exited with code 7, after 3 restarts"):
        async with asyncio.timeout(DEADLINE_S):
            await stack.supervise()


async def test_a_component_that_does_not_start_reports_the_reason_and_its_log(stack: Stack) -> None:
    component = Failing(stack.site)
    with pytest.raises(ComponentError) as failure:
        await component.start()
    assert "exited with code 1\n  | the license has expired" in str(failure.value)
    assert str(component.log) in str(failure.value)
    assert component.state.status is Status.FAILED


async def test_only_one_stack_at_a_time_uses_a_directory(stack: Stack) -> None:
    with pytest.raises(DirectoryInUseError, match=f"process {os.getpid()}"):
        await Stack(stack.directory.path, components=("redis",)).start()


async def test_a_port_in_use_is_replaced_and_reported(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        async with Stack(data, components=("redis",), ports={"redis": taken}) as stack:
            assert stack.redis.port != taken
            assert stack.redis.state.detail == f"port {taken} is in use"
            assert stack.redis.running


async def test_external_servers_are_checked_and_never_stopped(stack: Stack, data: Path) -> None:
    at = stack.endpoints
    environ = {"ROTA_REDIS_URL": at.redis_url, "ROTA_DATABASE_URL": at.database_url}
    async with Stack(data, components=("postgres", "redis"), environ=environ) as other:
        assert other.endpoints.redis_url == at.redis_url
        assert other.environment()["ROTA_DATABASE_URL"] == at.database_url
        assert other.redis.state.detail == "external: ROTA_REDIS_URL"
        assert not (data / "postgres").exists()
    async with redis.asyncio.from_url(at.redis_url) as client:
        assert await client.ping()


async def test_the_simulated_stripe_server_keeps_its_webhook_url_after_a_restart(
    data: Path,
) -> None:
    async with Stack(data, components=("stripe",)) as stack, httpx.AsyncClient() as client:
        url = stack.endpoints.stripe_url
        variables = stack.environment()
        assert variables["ROTA_STRIPE_API_URL"] == url == stack.stripe.state.url
        assert variables["ROTA_STRIPE_SECRET_KEY"].startswith("sk_test_")
        assert variables["ROTA_STRIPE_WEBHOOK_SECRETS"].startswith("whsec_")

        await stack.stripe.send_webhooks_to("http://127.0.0.1:9/webhooks/stripe")
        for _ in range(2):
            settings = (await client.get(f"{url}/_control/webhooks")).json()
            assert settings["url"] == "http://127.0.0.1:9/webhooks/stripe"
            await stack.stripe.restart()


async def test_with_a_stripe_key_there_is_no_simulated_server_and_the_key_is_not_shown(
    data: Path,
) -> None:
    environ = {"ROTA_STRIPE_SECRET_KEY": "sk_live_secret"}
    async with Stack(data, components=("stripe",), environ=environ) as stack:
        await stack.stripe.send_webhooks_to("http://127.0.0.1:9/webhooks/stripe")
        assert stack.stripe.state.detail == "external: ROTA_STRIPE_SECRET_KEY"
        assert "sk_live" not in str(stack.stripe.state)
        assert stack.endpoints.stripe_url is None
        assert stack.environment() == {}
        assert not (data / "stripe").exists()


async def test_an_external_server_that_does_not_answer_is_an_error(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused = ports.find()
    monkeypatch.setattr(Redis, "ready_within_s", 0.3)
    environ = {"ROTA_REDIS_URL": f"redis://127.0.0.1:{unused}/0"}
    with pytest.raises(ComponentError, match=r"redis: was not ready within 0 s: ConnectionError"):
        async with Stack(data, components=("redis",), environ=environ):
            pass
    assert not DataDirectory(data).in_use()


async def test_without_weights_the_model_is_left_out_and_the_others_start(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Model, "_weights", lambda _: None)
    async with Stack(data, components=("redis", "model")) as stack:
        assert stack.model.state.status is Status.MISSING
        assert stack.model.state.detail == WITHOUT_WEIGHTS
        assert stack.endpoints.model_url is None
        assert stack.redis.running


def test_a_missing_model_file_is_named(data: Path) -> None:
    directory = DataDirectory(data)
    directory.adopt()
    model = Model(Site(directory, environ={"ROTA_MODEL_PATH": "/no/such.gguf"}))
    assert model.missing() == "ROTA_MODEL_PATH: file not found: /no/such.gguf"


async def test_the_model_answers(data: Path) -> None:
    async with Stack(data, components=("model",)) as stack, httpx.AsyncClient(timeout=60) as client:
        response = await client.post(
            f"{stack.endpoints.model_url}/chat/completions",
            json={
                "model": "smollm2",
                "messages": [{"role": "user", "content": "Say hello."}],
                "max_tokens": 8,
            },
        )
        # Without the secret in the path, a web page gets nothing, whatever its Host and Origin.
        base = f"http://127.0.0.1:{stack.model.port}"
        for path in ("/", "/v1/models", "/v1/chat/completions", "/slots", "/health"):
            assert (await client.get(f"{base}{path}")).status_code == 404, path
    assert response.json()["choices"][0]["message"]["content"]


async def test_fresh_deletes_all_data(data: Path) -> None:
    directory = await DataDirectory(data).claim()
    password = directory.password("redis")
    directory.log("redis").write_text("old")
    directory.release()

    await directory.claim(fresh=True)

    assert not (data / "logs").exists()
    assert directory.password("redis") != password
    directory.release()
