"""Finds the owners of API keys, and limits what unknown keys cost.

Anyone can invent a well-formed key, and only the database knows that it does not exist. From an
address that has sent many such keys, look-ups wait for the next query that all of these addresses
share. There are at most ten such queries per second. No look-up is refused, so a valid key works
from every address. The owner of a key never changes, so a key that was valid lately needs no query:
whether it still exists is read with its scopes.
"""

import asyncio

from rota.auth import queries
from rota.auth.queries import KeyOwner
from rota.platform.cache import ExpiringCache
from rota.platform.db import Database

# An address with this many failed look-ups shares queries, until it has none for a minute.
FAILURES = 20
REMEMBER_S = 60
SHARED_EVERY_S = 0.1
KNOWN_S = 600


class KeyLookup:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._failures: ExpiringCache[str, int] = ExpiringCache(
            max_items=10_000, max_age_s=REMEMBER_S
        )
        self._known: ExpiringCache[bytes, KeyOwner] = ExpiringCache(
            max_items=10_000, max_age_s=KNOWN_S
        )
        # The next shared query, and the hashes that it looks for.
        self._batch: asyncio.Task[dict[bytes, KeyOwner]] | None = None
        self._hashes: set[bytes] = set()
        self._one_at_a_time = asyncio.Lock()

    async def owner(self, secret_hash: bytes, address: str | None) -> KeyOwner | None:
        """The owner of a key. Counts as a failure of the address until `succeeded` is called."""
        failures = self._count(address, 1)
        if known := self._known.get(secret_hash):
            return known
        if failures > FAILURES:
            return await self._shared(secret_hash)
        async with self._db.directory() as connection:
            found = await queries.find_key_owners(connection, [secret_hash])
        return found.get(secret_hash)

    def succeeded(self, secret_hash: bytes, owner: KeyOwner, address: str | None) -> None:
        self._count(address, -1)
        self._known.put(secret_hash, owner)

    def _count(self, address: str | None, change: int) -> int:
        if address is None:
            return 0
        failures = max(0, (self._failures.get(address) or 0) + change)
        self._failures.put(address, failures)
        return failures

    async def _shared(self, secret_hash: bytes) -> KeyOwner | None:
        if self._batch is None:
            self._batch = asyncio.create_task(self._run())
        self._hashes.add(secret_hash)
        # The others still wait if this request is cancelled.
        owners = await asyncio.shield(self._batch)
        return owners.get(secret_hash)

    async def _run(self) -> dict[bytes, KeyOwner]:
        async with self._one_at_a_time:
            await asyncio.sleep(SHARED_EVERY_S)
            hashes, self._hashes, self._batch = list(self._hashes), set(), None
            async with self._db.directory() as connection:
                return await queries.find_key_owners(connection, hashes)
