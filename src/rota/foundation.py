"""The parts on which all others are built: connections, keys and the authenticator, and the checks
at the start of a process that it can use them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Self

import structlog
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError

from rota.auth.authenticator import Authenticator
from rota.auth.tokens import KeyRing, SessionTokens
from rota.events.fanout import Fanout
from rota.events.live_text import LiveTexts
from rota.events.live_watch import LiveWatch
from rota.events.wakes import Wakes
from rota.limits import window
from rota.platform import redis as redis_clients
from rota.platform.continuity import Continuity
from rota.platform.crypto import SealBroken, Vault
from rota.platform.database_errors import explain
from rota.platform.db import Database, DatabaseTimeouts
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.platform.temporal import Temporal, temporal_of

log = structlog.get_logger()


class Foundation:
    def __init__(self, settings: Settings, *, pool_size: int | None = None) -> None:
        self.settings = settings
        self._pool_size = pool_size or settings.database_pool_size
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.db.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        # The database last: the other parts may still use it while they close.
        try:
            await self._closing.aclose()
        finally:
            await self.db.close()

    def _closes(self, close: Callable[[], Awaitable[object]]) -> None:
        self._closing.push_async_callback(close)

    async def check_start(self) -> None:
        """Refuses a database or a Redis that the service cannot use."""
        await self.db.check_version()
        await self.check_secret_key()
        await self.check_redis()
        await self.continuity.check()

    async def check_database(self) -> None:
        """Refuses a database whose schema is too old, or that was restored meanwhile."""
        await self.db.check_version()
        await self.continuity.check_again()

    async def check_secret_key(self) -> None:
        """The signing keys are in every database, so they show whether the key is the right one."""
        try:
            found = await self.key_ring.can_open()
        except SealBroken as error:
            raise StartRefused(explain(error)) from error
        if not found:
            raise StartRefused("The database has no signing key. Run: rota admin migrate")

    async def check_redis(self) -> None:
        """Refuses a Redis that the service cannot use. It works without one that is down."""
        try:
            async with asyncio.timeout(2):
                await self.ping_redis()
        except AuthenticationError as error:
            raise StartRefused(
                f"Redis refuses the login ({error}). Correct the user and the password in "
                "ROTA_REDIS_URL."
            ) from error
        except (RedisError, OSError) as error:
            log.warning("redis_unavailable", error=repr(error))

    async def ping_redis(self) -> None:
        await redis_clients.check(self.limiter_redis)

    @cached_property
    def db(self) -> Database:
        settings = self.settings
        return Database(
            settings.database_url.get_secret_value(),
            pool_size=self._pool_size,
            announce=self.fanout.announce,
            wake=self.wakes.announce,
            timeouts=DatabaseTimeouts(
                pool_s=settings.database_pool_timeout_s,
                lock_s=settings.database_lock_timeout_s,
                statement_s=settings.database_statement_timeout_s,
                idle_s=settings.database_idle_timeout_s,
            ),
            statement_cache=settings.database_statement_cache,
            production=settings.env == "production",
        )

    @cached_property
    def vault(self) -> Vault:
        return Vault(*self.settings.secret_keys)

    @cached_property
    def temporal(self) -> Temporal:
        return temporal_of(self.settings)

    @cached_property
    def redis(self) -> Redis:
        settings = self.settings
        redis = redis_clients.connect(settings.redis_url.get_secret_value(), settings.redis_ca_file)
        self._closes(redis.aclose)
        return redis

    @cached_property
    def continuity(self) -> Continuity:
        return Continuity(self.db, self.redis)

    @cached_property
    def fanout(self) -> Fanout:
        fanout = Fanout(
            self.redis, on_removal=lambda *removed: self.authenticator.forget_member(*removed)
        )
        self._closes(fanout.aclose)
        return fanout

    @cached_property
    def wakes(self) -> Wakes:
        wakes = Wakes(self.redis, lambda: self.db.identity())
        self._closes(wakes.aclose)
        return wakes

    @cached_property
    def live_texts(self) -> LiveTexts:
        texts = LiveTexts(self.redis)
        self._closes(texts.aclose)
        return texts

    @cached_property
    def live_watch(self) -> LiveWatch:
        watch = LiveWatch(self.redis)
        self._closes(watch.aclose)
        return watch

    @cached_property
    def limiter_redis(self) -> Redis:
        settings = self.settings
        redis = window.connect(settings.redis_url.get_secret_value(), settings.redis_ca_file)
        self._closes(redis.aclose)
        return redis

    @cached_property
    def key_ring(self) -> KeyRing:
        return KeyRing(self.db, self.vault)

    @cached_property
    def session_tokens(self) -> SessionTokens:
        return SessionTokens(self.key_ring, self.settings.public_url, cell=self.settings.cell)

    @cached_property
    def authenticator(self) -> Authenticator:
        return Authenticator(
            self.db,
            self.session_tokens,
            idle_days=self.settings.session_idle_days,
            cell=self.settings.cell,
        )
