"""Findings that need no installation: how a check ends, and what a server says about itself."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from redis.exceptions import NoPermissionError

from rota.doctor import database, names, outside, queues
from rota.doctor.finding import Finding, findings, ok
from rota.platform import clock
from rota.platform import redis as redis_clients
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused


async def all_of(found: AsyncIterator[Finding]) -> list[tuple[str, str, str]]:
    return [(each.check, each.status, each.message) async for each in found]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (StartRefused("Set ROTA_A."), "Set ROTA_A."),
        (ZeroDivisionError("by\nzero"), "The check stopped with ZeroDivisionError: by zero"),
        (ZeroDivisionError(), "The check stopped with ZeroDivisionError: ZeroDivisionError"),
        (
            FileNotFoundError(2, "No such file", "/etc/ca.pem"),
            "Cannot read /etc/ca.pem: No such file. Correct the setting.",
        ),
    ],
)
async def test_an_error_ends_a_check_with_one_line(error: Exception, message: str) -> None:
    async def check() -> AsyncIterator[Finding]:
        yield ok("first", "works")
        raise error

    assert await findings("second", check) == [
        ok("first", "works"),
        Finding("second", "failed", message),
    ]


async def test_a_check_that_hangs_is_ended() -> None:
    async def check() -> AsyncIterator[Finding]:
        await asyncio.Event().wait()
        yield ok("never", "reached")

    [found] = await findings("slow", check, timeout_s=0.01)
    assert found.message.startswith("No response within 0.01 s.")


def server(**changes: Any) -> Any:
    async def read(_: str) -> dict[str, Any]:
        return {
            "version": 16,
            "connections": 100,
            "now": clock.now(),
            "archive_mode": "on",
        } | changes

    return read


@pytest.mark.parametrize(
    ("changes", "status", "text"),
    [
        ({}, "ok", "PostgreSQL 16"),
        ({"version": 12}, "failed", "PostgreSQL 12 is too old."),
        ({"connections": 5}, "warning", "Lower ROTA_DATABASE_POOL_SIZE"),
        ({"now": clock.now() - timedelta(hours=1)}, "warning", "Synchronize them"),
    ],
)
async def test_a_postgresql_that_does_not_fit_is_named(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], status: str, text: str
) -> None:
    monkeypatch.setattr(database, "_server", server(**changes))
    check, found, message = (await all_of(database.check_server(Settings())))[0]
    assert (check, found) == ("postgres", status)
    assert text in message


async def test_the_login_for_migrations_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(migration_database_url=SecretStr("postgresql://owner@127.0.0.1/rota"))
    monkeypatch.setattr(database, "_server", server())
    assert ("migration login", "ok", "the owner's login works") in await all_of(
        database.check_server(settings)
    )
    service_url = settings.database_url.get_secret_value()

    async def refuse_owner(url: str) -> Any:
        if url != service_url:
            raise ConnectionRefusedError("refused")
        return await server()(url)

    monkeypatch.setattr(database, "_server", refuse_owner)
    *_, last = await all_of(database.check_server(settings))
    assert last[:2] == ("migration login", "warning")
    assert "ROTA_MIGRATION_DATABASE_URL" in last[2]


@pytest.mark.parametrize(
    ("info", "status", "text"),
    [
        ({"redis_version": "7.0.1"}, "ok", "Redis 7.0.1"),
        ({"redis_version": "5.0.3"}, "failed", "Redis 5.0.3 is too old."),
        (NoPermissionError("INFO"), "ok", "its version is not readable"),
    ],
)
async def test_a_redis_that_is_too_old_is_named(
    monkeypatch: pytest.MonkeyPatch, info: Any, status: str, text: str
) -> None:
    class Client:
        async def info(self, _: str) -> Any:
            if isinstance(info, Exception):
                raise info
            return info

        async def aclose(self) -> None:
            pass

    async def works(_: Any) -> None:
        pass

    monkeypatch.setattr(redis_clients, "connect", lambda *_, **__: Client())
    monkeypatch.setattr(redis_clients, "check", works)
    [(check, found, message)] = await all_of(queues.check_redis(Settings()))
    assert (check, found) == ("redis", status)
    assert text in message


async def test_payments_need_webhooks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Processor:
        async def payment(self, _: str) -> None:
            return None

        async def close(self) -> None:
            pass

    monkeypatch.setattr(outside, "processor_of", lambda _: Processor())
    settings = Settings(stripe_secret_key=SecretStr("sk_test_1"))
    [(_, status, message)] = await all_of(outside.check_payments(settings))
    assert status == "failed"
    assert "set ROTA_STRIPE_WEBHOOK_SECRETS" in message
    settings = settings.model_copy(update={"stripe_webhook_secrets": (SecretStr("whsec_1"),)})
    assert await all_of(outside.check_payments(settings)) == [
        ("payments", "ok", "Stripe accepts the key")
    ]


async def test_a_collector_that_listens_is_found() -> None:
    listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        settings = Settings(otlp_endpoint=f"http://127.0.0.1:{port}")
        found = await all_of(outside.check_tracing(settings))
    assert [each[:2] for each in found] == [("tracing", "ok")]


async def test_a_host_that_has_no_address_is_named_with_its_setting() -> None:
    url = SecretStr("postgresql://owner@[::1]:5432,nowhere.invalid/rota")
    found = await all_of(names.check(Settings(migration_database_url=url)))
    [wrong] = [message for _, status, message in found if status != "ok"]
    assert "nowhere.invalid" in wrong
    assert "ROTA_MIGRATION_DATABASE_URL" in wrong


async def test_a_production_without_an_archive_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_server", server(archive_mode="off"))
    production = Settings().model_copy(update={"env": "production"})
    check, found, message = (await all_of(database.check_server(production)))[0]
    assert (check, found) == ("postgres", "warning")
    assert "archive_mode is off" in message
    assert (await all_of(database.check_server(Settings())))[0][1] == "ok"
