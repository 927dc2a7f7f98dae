"""Reads the events that webhooks send."""

from dataclasses import dataclass
from uuid import UUID

from rota.accounts import queries as accounts
from rota.auth import queries as credentials
from rota.events import journal
from rota.platform.cache import SharedCalls
from rota.platform.db import Database
from rota.webhooks import queries

# Events read at a time.
PAGE = 100


class AccountGone(Exception):
    """The account was deleted or cannot be used any more, so nothing is sent for it."""


@dataclass(frozen=True, slots=True)
class Page:
    events: list[journal.Event]
    # The number of the first event that is stored, or of the next one to come.
    first: int
    # The revisions of the account's enabled webhooks.
    revisions: dict[UUID, int]
    # Those whose URL was chosen with an API key that does not work any more.
    ended: set[UUID]

    @property
    def first_lost(self) -> int:
        """The number of the first event before this page that a restore has lost. `first` if it
        has lost none."""
        news = self.events[0] if self.events else None
        if news and news.type == "account.restored" and news.data["lostThrough"] == self.first - 1:
            return int(news.data["lostFrom"])
        return self.first


class Journal:
    """Reads events. Webhooks of an account that are equally far share a read."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._reads: SharedCalls[tuple[UUID, int], Page] = SharedCalls()

    async def after(self, account_id: UUID, sequence: int) -> Page:
        key = (account_id, sequence)
        return await self._reads.run(key, lambda: self._read(account_id, sequence))

    async def key_works(self, account_id: UUID, key_id: UUID) -> bool:
        """Whether webhooks whose URL was chosen with this API key still send."""
        async with self._db.read(account_id) as tx:
            return bool(await credentials.working_keys(tx, {key_id}, "webhooks:write"))

    async def _read(self, account_id: UUID, sequence: int) -> Page:
        async with self._db.snapshot(account_id) as tx:
            if not await accounts.is_open(tx):
                raise AccountGone
            events = await journal.after(tx, sequence, limit=PAGE)
            first = events[0].sequence if events else await journal.last_sequence(tx) + 1
            found = await queries.revisions(tx)
            revisions = {webhook_id: revision for webhook_id, (revision, _) in found.items()}
            keys = {key_id for _, key_id in found.values() if key_id}
            keys -= await credentials.working_keys(tx, keys, "webhooks:write")
            ended = {webhook_id for webhook_id, (_, key_id) in found.items() if key_id in keys}
            return Page(events, first, revisions, ended)
