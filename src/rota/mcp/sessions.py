"""The sessions of a process: opened on first use, shared, and closed when idle."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from uuid import UUID

from rota.mcp.errors import ServerUnreachable
from rota.mcp.session import Address, Session, Timeouts
from rota.platform.egress import Egress

# The ID of a server and its revision.
SessionKey = tuple[UUID, int]


@dataclass(slots=True)
class _Entry:
    session: Session | None = None
    users: int = 0
    used_at: float = 0
    # Set if a newer revision has replaced it. The last user closes the session.
    replaced: bool = False
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """The sessions of one process, by the ID and the revision of the server.

    A revision has its own session, so a changed URL or credential is used from the first call that
    knows it, in every process.
    """

    def __init__(
        self, egress: Egress, timeouts: Timeouts, *, limit: int = 200, idle_s: float = 300
    ) -> None:
        self._egress = egress
        self._timeouts = timeouts
        self._limit = limit
        self._idle_s = idle_s
        self._entries: dict[SessionKey, _Entry] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    async def open(self, address: Address) -> Session:
        """Opens a session that is not stored under a key yet."""
        session = Session(self._egress, address, self._timeouts)
        await session.open()
        return session

    def add(self, key: SessionKey, session: Session) -> None:
        """Stores an open session."""
        if self._make_room(key):
            self._entries[key] = _Entry(session, used_at=time.monotonic())
            self._start_sweeper()
        else:
            self.close_in_background(session)

    @contextlib.asynccontextmanager
    async def use(self, key: SessionKey, address: Callable[[], Address]) -> AsyncIterator[Session]:
        """The server's session. Opens one if none is open."""
        entry = self._entries.get(key)
        if entry is None:
            if not self._make_room(key):
                raise ServerUnreachable(
                    "Too many tool servers are in use at the moment. Try again later.", sent=False
                )
            # A caller can have read the server just before it changed. Its session is not kept.
            entry = _Entry(replaced=any(each[0] == key[0] and each > key for each in self._entries))
            if not entry.replaced:
                self._entries[key] = entry
                self._start_sweeper()
        entry.users += 1
        try:
            async with entry.opening:
                if entry.session is None or entry.session.closed:
                    if entry.session is not None:
                        self.close_in_background(entry.session)
                    entry.session = None
                    entry.session = await self.open(address())
            yield entry.session
        finally:
            entry.users -= 1
            entry.used_at = time.monotonic()
            if entry.users == 0 and entry.session is None and self._entries.get(key) is entry:
                del self._entries[key]
            if entry.users == 0 and entry.session is not None and entry.replaced:
                self.close_in_background(entry.session)

    def remove(self, server_id: UUID) -> None:
        """Closes every session of a server, even those in use."""
        for key in [key for key in self._entries if key[0] == server_id]:
            self._remove(key)

    def _remove(self, key: SessionKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and entry.session is not None:
            self.close_in_background(entry.session)

    def _replace_older(self, key: SessionKey) -> None:
        """Closes the sessions of older revisions. Calls that are under way end first."""
        server_id, revision = key
        older = [each for each in self._entries if each[0] == server_id and each[1] < revision]
        for each in older:
            if self._entries[each].users:
                self._entries.pop(each).replaced = True
            else:
                self._remove(each)

    def close_in_background(self, session: Session) -> None:
        """Closes a session without waiting for it."""
        task = asyncio.create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for key in list(self._entries):
            self._remove(key)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _make_room(self, key: SessionKey) -> bool:
        self._remove(key)
        self._replace_older(key)
        if len(self._entries) < self._limit:
            return True
        unused = [(entry.used_at, key) for key, entry in self._entries.items() if not entry.users]
        if not unused:
            return False
        self._remove(min(unused)[1])
        return True

    def _start_sweeper(self) -> None:
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        """Closes idle sessions."""
        while self._entries:
            await asyncio.sleep(self._idle_s / 4)
            cutoff = time.monotonic() - self._idle_s
            for key, entry in list(self._entries.items()):
                if not entry.users and entry.used_at < cutoff:
                    self._remove(key)
