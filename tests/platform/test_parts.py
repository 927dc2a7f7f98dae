"""Sealed values, IDs, times, the cache, and the checks of /health/ready."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import asyncpg
import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from rota.dev.stack import Stack
from rota.platform import clock, ids, json
from rota.platform.cache import ExpiringCache
from rota.platform.crypto import SealBroken, Vault
from rota.platform.db import owner_connection
from rota.platform.health import HealthChecks, health_routes
from rota.platform.temporal import Temporal
from tests.service import Service, free_port

VAULT = Vault(b"k" * 32)


@given(st.binary(max_size=200), st.text(max_size=40))
def test_a_sealed_value_opens_in_its_context(plaintext: bytes, context: str) -> None:
    assert VAULT.open(VAULT.seal(plaintext, context), context) == plaintext


def test_sealing_a_value_twice_gives_different_results() -> None:
    assert VAULT.seal(b"secret", "place") != VAULT.seal(b"secret", "place")
    assert b"secret" not in VAULT.seal(b"secret", "place")


def test_a_sealed_value_needs_its_context_and_its_key() -> None:
    sealed = VAULT.seal(b"secret", "account/row/field")
    with pytest.raises(SealBroken):
        VAULT.open(sealed, "account/other/field")
    with pytest.raises(SealBroken):
        Vault(b"x" * 32).open(sealed, "account/row/field")


def test_a_sealed_value_with_a_changed_or_missing_byte_does_not_open() -> None:
    sealed = VAULT.seal(b"secret", "place")
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1
        for broken in (bytes(changed), sealed[:at]):
            with pytest.raises(SealBroken):
                VAULT.open(broken, "place")


def test_ids_sort_by_time_and_can_be_parsed() -> None:
    made = [ids.new_uuid() for _ in range(1000)]
    assert made == sorted(made)
    assert len(set(made)) == 1000
    assert all(ids.from_wire("task", ids.to_wire("task", value)) == value for value in made)


@pytest.mark.parametrize(
    "text",
    [
        *("", "task_", "task", f"key_{0:032x}", f"task_{0:031x}", f"task_{0:033x}"),
        *(f"task_{'A' * 32}", f"task_{'g' * 32}", f"TASK_{0:032x}", f" task_{0:032x}", f"{0:032x}"),
        *(f"task_{'٣' * 32}", f"x_task_{0:032x}", "task_00000000-0000-0000-0000-000000000000"),
    ],
)
def test_an_id_has_one_spelling(text: str) -> None:
    assert ids.from_wire("task", text) is None


def test_times_on_the_wire_are_utc_in_milliseconds() -> None:
    moment = datetime(2027, 1, 31, 14, 0, 0, 123_999, timezone(timedelta(hours=2)))
    assert clock.to_wire(moment) == "2027-01-31T12:00:00.123Z"
    assert clock.now().tzinfo is UTC


def test_the_cache_removes_the_oldest_first() -> None:
    cache: ExpiringCache[str, int] = ExpiringCache(max_items=2, max_age_s=60)
    for number, name in enumerate("abc"):
        cache.put(name, number)
    assert [cache.get(name) for name in "abc"] == [None, 1, 2]
    cache.put("b", 7)
    cache.put("d", 8)
    assert [cache.get(name) for name in "bcd"] == [7, None, 8]
    cache.drop("b")
    cache.drop("nothing")
    assert cache.get("b") is None


def test_the_cache_ignores_expired_items() -> None:
    cache: ExpiringCache[str, int] = ExpiringCache(max_items=2, max_age_s=0)
    cache.put("a", 1)
    assert cache.get("a") is None


async def test_a_service_is_ready_when_all_checks_pass(probed: Service) -> None:
    response = await probed.http.get("/health/ready")
    assert response.status_code == 200
    checks = dict.fromkeys(("postgres", "schema", "secretKey", "redis", "temporal"), "ok")
    assert response.json() == {"status": "ready", "checks": checks}


async def test_a_service_is_degraded_without_temporal_and_unavailable_without_its_database(
    stack: Stack,
) -> None:
    async with Service.start(
        stack, variant="a", name="degraded", temporal_address=f"127.0.0.1:{free_port()}"
    ) as service:
        response = await service.http.get("/health/ready")
        assert response.status_code == 200
        assert response.json()["status"] == "degraded"
        assert response.json()["checks"]["temporal"] != "ok"
        admin = await asyncpg.connect(stack.endpoints.admin_database_url)
        await admin.execute("ALTER DATABASE degraded ALLOW_CONNECTIONS false")
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'degraded'"
        )
        async with asyncio.timeout(10):
            while (response := await service.http.get("/health/ready")).status_code != 503:
                pass
        await admin.execute("ALTER DATABASE degraded ALLOW_CONNECTIONS true")
        await admin.close()
        assert response.json()["status"] == "unavailable"
        assert response.json()["checks"]["postgres"].startswith("failed: ")
        async with asyncio.timeout(10):
            while (await service.http.get("/health/ready")).status_code != 200:
                pass


async def test_a_check_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.platform.health.TIMEOUT_S", 0.01)

    async def hang() -> None:
        await asyncio.Event().wait()

    app = FastAPI()
    app.include_router(health_routes(HealthChecks({}, {"slow": hang})))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://x") as http:
        response = (await http.get("/health/ready")).json()
    assert response == {"status": "degraded", "checks": {"slow": "no response within 0.01 s"}}


async def test_the_metric_of_a_check_follows_it_without_any_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rota.platform.health.MEASURE_EVERY_S", 0)
    monkeypatch.setattr("rota.platform.health.MAX_AGE_S", 0)
    healthy = True

    async def check() -> None:
        if not healthy:
            raise ConnectionRefusedError

    async def becomes(value: float) -> None:
        async with asyncio.timeout(10):
            while REGISTRY.get_sample_value("rota_check_ok", {"check": "peer"}) != value:
                await asyncio.sleep(0)

    async with HealthChecks({"peer": check}, {}).measured():
        await becomes(1)
        healthy = False
        await becomes(0)
        healthy = True
        await becomes(1)


async def test_callers_share_checks_that_are_less_than_a_second_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rota.platform.health.MAX_AGE_S", 60)
    healthy, checks = asyncio.Event(), 0

    async def check() -> None:
        nonlocal checks
        checks += 1
        await healthy.wait()

    app = FastAPI()
    app.include_router(health_routes(HealthChecks({"database": check}, {})))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://x") as http:
        # One caller disconnects while the others wait.
        first = asyncio.create_task(http.get("/health/ready"))
        while not checks:
            await asyncio.sleep(0)
        others = [asyncio.create_task(http.get("/health/ready")) for _ in range(20)]
        await asyncio.sleep(0)
        first.cancel()
        healthy.set()
        assert {(await other).status_code for other in others} == {200}
        assert (await http.get("/health/ready")).status_code == 200
        assert checks == 1
        monkeypatch.setattr("rota.platform.health.MAX_AGE_S", 0)
        assert (await http.get("/health/ready")).status_code == 200
        assert checks == 2


async def test_the_temporal_client_is_created_once(stack: Stack) -> None:
    temporal = Temporal(stack.endpoints.temporal_address, "default")
    await temporal.ping()
    assert await temporal.client() is await temporal.client()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
)


@given(JSON_VALUES)
def test_stored_json_keeps_integers_of_any_size(value: object) -> None:
    assert json.exact(json.dumps(value)) == value
    assert json.exact(json.dumps(value, sort_keys=True)) == value


def test_stored_json_has_one_form_with_and_without_long_integers() -> None:
    assert json.dumps({"b": [1, "é"], "a": 2**70}, sort_keys=True) == (
        f'{{"a":{2**70},"b":[1,"é"]}}'.encode()
    )
    assert (
        json.dumps([float("nan"), float("-inf"), 1.5, 2**70]) == f"[null,null,1.5,{2**70}]".encode()
    )
    deep = "[" * 300 + "]" * 300
    assert json.dumps(json.exact(deep)).decode() == deep
    with pytest.raises(ValueError, match="4300"):
        json.dumps(10**5_000)


async def test_the_database_returns_the_integers_that_it_was_given(service: Service) -> None:
    value = {"long": [2**64, -(2**200), 10**4_000], "short": 7, "half": 0.5, "big": 1e30}
    async with owner_connection(service.database_url) as connection:
        found = await connection.fetchval("SELECT $1::jsonb", value)
    assert found == {**value, "big": 10**30}
    assert [type(number) for number in found["long"]] == [int] * 3
