"""Reads the audit trail for those who may see it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from rota.audit import export, heads, queries
from rota.audit.queries import Filter, Head, Stored
from rota.auth.caller import Caller
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.signatures import Signer


@dataclass(frozen=True, slots=True)
class Page:
    entries: list[Stored]
    total: int
    head: Head
    signed_head: str


class AuditTrail:
    def __init__(self, db: Database, signer: Signer, issuer: str) -> None:
        self._db = db
        self.signer = signer
        self._issuer = issuer

    async def page(self, caller: Caller, filters: Filter, limit: int, offset: int) -> Page:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            entries, total = await queries.page(tx, filters, limit, offset)
            head = await queries.head(tx)
        return Page(entries, total, head, self.sign(head))

    async def export(
        self, caller: Caller, check: Callable[[], Awaitable[object]]
    ) -> AsyncIterator[bytes]:
        """The whole trail, as it is now. `check` raises if the caller cannot read it anymore."""
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            head = await queries.head(tx)
        async for page in export.lines(self._db, head, self.sign(head)):
            await check()
            yield page

    def sign(self, head: Head) -> str:
        return heads.sign(self.signer, self._issuer, head, clock.now())
