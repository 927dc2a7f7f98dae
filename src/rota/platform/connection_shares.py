"""A share of a process's database connections for each account.

An account's transactions can wait for each other, for example for the lock on the account. Without
a share, those that wait would hold every connection of the process, and other accounts would wait
with them. No transaction may wait for a second share while it holds one.
"""

import asyncio
from dataclasses import dataclass
from uuid import UUID

from prometheus_client import Counter, Gauge

from rota.platform.errors import RateLimited

WAITING = Gauge(
    "rota_database_share_waiting",
    "Transactions that wait because their account holds its share of connections.",
)
REFUSED = Counter(
    "rota_database_share_refused_total",
    "Transactions that were refused because their account held its share of connections.",
)

MAX_WAITING = 256


class ShareExceeded(RateLimited):
    def __init__(self) -> None:
        super().__init__(
            "The account has too many requests in progress. Send fewer at the same time."
        )


@dataclass(slots=True)
class _Share:
    free: asyncio.Semaphore
    # Transactions that hold a connection of the share or wait for one.
    users: int = 0


class ConnectionShares:
    def __init__(self, size: int, timeout_s: float) -> None:
        self.size = size
        self._timeout_s = timeout_s
        # Only of accounts that have a transaction now.
        self._shares: dict[UUID, _Share] = {}

    async def enter(self, account_id: UUID) -> None:
        """Waits for a connection of the account's share, first come, first served. `leave` gives it
        back."""
        share = self._shares.get(account_id)
        if share is None:
            share = self._shares[account_id] = _Share(asyncio.Semaphore(self.size))
        if share.users >= self.size + MAX_WAITING:
            REFUSED.inc()
            raise ShareExceeded
        share.users += 1
        try:
            if share.free.locked():
                await self._wait(share)
            else:
                await share.free.acquire()
        except BaseException:
            self._forget(account_id, share)
            raise

    def leave(self, account_id: UUID) -> None:
        share = self._shares[account_id]
        share.free.release()
        self._forget(account_id, share)

    def _forget(self, account_id: UUID, share: _Share) -> None:
        share.users -= 1
        if not share.users:
            del self._shares[account_id]

    async def _wait(self, share: _Share) -> None:
        try:
            with WAITING.track_inprogress():
                async with asyncio.timeout(self._timeout_s):
                    await share.free.acquire()
        except TimeoutError:
            REFUSED.inc()
            raise ShareExceeded from None
