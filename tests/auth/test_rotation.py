"""Rotating the signing keys of session tokens."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from rota.auth import rotation, tokens
from rota.auth.compact import BadToken
from rota.auth.errors import SigningKeyMissing
from rota.auth.tokens import KeyRing, seal_context
from rota.dev.stack import Stack
from rota.platform.crypto import SealBroken, Vault
from rota.platform.db import Database
from tests import forks
from tests.auth.forge import header_of
from tests.auth.waiting import seconds_until
from tests.service import Service, environment


@pytest.fixture(scope="module")
async def service(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="auth_rotation") as started:
        yield started


async def rota(service: Service, *arguments: str) -> str:
    variables = os.environ | environment(service.settings)
    code, output, _ = await forks.ended("rota.cli", *arguments, env=variables)
    assert code == 0, output
    return output


async def published(service: Service) -> list[str]:
    document = (await service.http.get("/.well-known/jwks.json")).json()
    return [key["kid"] for key in document["keys"]]


@asynccontextmanager
async def opened(service: Service) -> AsyncIterator[KeyRing]:
    """The keys as a process reads them after its start."""
    db = Database(service.database_url, pool_size=1)
    await db.open()
    try:
        yield KeyRing(db, Vault(service.settings.secret_key_bytes))
    finally:
        await db.close()


@pytest.mark.timed
async def test_keys_rotate_with_and_without_overlap(service: Service) -> None:
    before = await service.sign_in()
    old = header_of(before.token)["kid"]
    said = await rota(service, "admin", "signing-keys", "rotate")
    new = next(kid for kid in await published(service) if kid != old)
    assert new in said
    assert sorted(await published(service)) == sorted([old, new])

    async def signs() -> bool:
        refreshed = (await before.post("/api/auth/refresh")).json()["token"]
        return bool(header_of(refreshed)["kid"] == new)

    assert await seconds_until(signs) < 5
    assert (await before.get("/api/me")).status_code == 200

    after = await service.sign_in()
    said = await rota(service, "admin", "signing-keys", "rotate", "--immediately")

    async def refused() -> bool:
        return (await after.get("/api/me")).status_code == 401

    assert await seconds_until(refused) < 1
    (newest,) = await published(service)
    assert newest in said
    for person in (before, after):
        assert (await person.get("/api/me")).status_code == 401
        assert (await person.post("/api/auth/refresh")).status_code == 401
    again = await service.sign_in()
    assert header_of(again.token)["kid"] == newest
    assert (await again.get("/api/me")).status_code == 200


async def test_old_keys_last_as_long_as_an_idle_session(service: Service) -> None:
    assert rotation.default_overlap_s(service.settings) == (30 + 7) * 86_400


async def test_a_new_key_signs_after_every_process_has_read_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "PROPAGATION", timedelta(hours=1))
    async with service.owner() as connection:
        await connection.execute("UPDATE signing_keys SET created_at = now() - interval '1 day'")
    vault = Vault(service.settings.secret_key_bytes)
    new = await rotation.rotate(service.database_url, vault, overlap_s=3600)
    async with opened(service) as ring:
        signs = (await ring.active()).kid
        assert signs != new
        assert (await ring.find(new)).kid == new
        monkeypatch.setattr(tokens, "PROPAGATION", timedelta(0))
        assert (await ring.active()).kid == new
    # If it is the only key, it signs immediately.
    monkeypatch.setattr(tokens, "PROPAGATION", timedelta(hours=1))
    newest = await rotation.rotate(service.database_url, vault, overlap_s=0)
    async with opened(service) as ring:
        assert (await ring.active()).kid == newest


async def test_a_rotation_does_not_extend_the_life_of_older_keys(service: Service) -> None:
    vault = Vault(service.settings.secret_key_bytes)
    older = await rotation.rotate(service.database_url, vault, overlap_s=0)
    old = await rotation.rotate(service.database_url, vault, overlap_s=100)
    new = await rotation.rotate(service.database_url, vault, overlap_s=1_000_000)
    async with service.owner() as connection:
        rows = await connection.fetch(
            "SELECT kid, extract(epoch FROM retires_at - now())::float AS s FROM signing_keys"
        )
    left_s = {row["kid"]: row["s"] for row in rows}
    assert left_s[older] <= 100 < left_s[old] <= 1_000_000
    assert left_s[new] is None


async def test_concurrent_calls_create_one_first_key(
    service: Service,
) -> None:
    vault = Vault(service.settings.secret_key_bytes)
    async with service.owner() as connection:
        await connection.execute("DELETE FROM signing_keys")
    await asyncio.gather(*[rotation.ensure_key(service.database_url, vault) for _ in range(5)])
    assert len(await published(service)) == 1


async def test_without_a_key_no_token_is_issued_or_accepted(service: Service) -> None:
    async with service.owner() as connection, opened(service) as ring:
        await connection.execute("DELETE FROM signing_keys")
        with pytest.raises(SigningKeyMissing):
            await ring.active()
        with pytest.raises(BadToken):
            await ring.find("anything")
        assert await ring.public_keys() == []
    await rotation.ensure_key(service.database_url, Vault(service.settings.secret_key_bytes))


async def test_a_process_with_the_old_secret_key_notices_a_rotation_of_it(service: Service) -> None:
    new = Vault(b"n" * 32, service.settings.secret_key_bytes)
    async with opened(service) as ring, service.owner() as connection:
        assert await ring.can_open()
        rows = await connection.fetch("SELECT kid, sealed_private FROM signing_keys")
        try:
            for row in rows:
                sealed = new.rewrap(row["sealed_private"], seal_context(row["kid"]))
                await connection.execute(
                    "UPDATE signing_keys SET sealed_private = $2 WHERE kid = $1", row["kid"], sealed
                )
            with pytest.raises(SealBroken):
                await ring.can_open()
        finally:
            for row in rows:
                await connection.execute(
                    "UPDATE signing_keys SET sealed_private = $2 WHERE kid = $1",
                    row["kid"],
                    row["sealed_private"],
                )


async def test_unknown_kids_cause_few_lookups(service: Service) -> None:
    db = CountingDatabase(service.database_url, pool_size=1)
    await db.open()
    try:
        ring = KeyRing(db, Vault(service.settings.secret_key_bytes))
        began = asyncio.get_running_loop().time()
        for number in range(10_000):
            with pytest.raises(BadToken):
                await ring.find(f"unknown-{number}")
        elapsed_s = asyncio.get_running_loop().time() - began
        assert db.transactions <= 2 + elapsed_s * 10
    finally:
        await db.close()


class CountingDatabase(Database):
    transactions = 0

    def directory(self):  # type: ignore[no-untyped-def]
        self.transactions += 1
        return super().directory()
