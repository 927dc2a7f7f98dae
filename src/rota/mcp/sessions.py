"""The sessions of a process: opened on first use, shared, and closed when idle."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from rota.mcp.errors import ServerError
from rota.mcp.session import Address, Session, Timeouts
from rota.platform.egress import Egress
from rota.platform.errors import RateLimited
from rota.platform.pace import Pace
from rota.platform.shares import Shares

# The ID of a server and its revision.
SessionKey = tuple[UUID, int]

# Of the event loop, for the tool servers of one account. A call takes this much of it, and a large
# message of the server more.
WORK_SHARE = 0.1
CALL_CPU_S = 0.001

_BUSY = (
    "This account uses too many tools at the same time. Wait until some of the calls have ended, "
    "then try again."
)


_TOO_MUCH_WORK = (
    "The tool servers of this account have used too much processor time, for example for long "
    "lists of tools. Try again in a few seconds."
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a process the tool servers can use, in total and for one account."""

    # Sessions that are open.
    sessions: int = 200
    account_sessions: int = 8
    # Connections, checks and calls in progress.
    calls: int = 400
    account_calls: int = 16
    # How long a call waits until others have ended.
    wait_s: float = 5
    # When an unused session is closed.
    idle_s: float = 300


@dataclass(slots=True)
class _Entry:
    account_id: UUID
    session: Session | None = None
    users: int = 0
    used_at: float = 0
    # Whether it has a place among the sessions in use.
    has_place: bool = False
    # How often it could not be opened, and why it failed last.
    failures: int = 0
    failure: ServerError | RateLimited | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """The sessions of one process, by the ID and the revision of the server.

    A revision has its own session, so a changed URL or credential is used from the first call that
    knows it, in every process.

    Each account has a share of the sessions and of the calls. So the slow servers of one account
    cannot keep others from calling theirs.
    """

    def __init__(self, egress: Egress, timeouts: Timeouts, limits: Limits | None = None) -> None:
        self._egress = egress
        self._timeouts = timeouts
        self._limits = limits = limits or Limits()
        self._calls = Shares(
            "tool_calls",
            _BUSY,
            total=limits.calls,
            per_account=limits.account_calls,
            waiting=limits.calls,
            wait_s=limits.wait_s,
        )
        self._in_use = Shares(
            "tool_sessions",
            _BUSY,
            total=limits.sessions,
            per_account=limits.account_sessions,
            waiting=limits.calls,
            wait_s=limits.wait_s,
        )
        self._pace = Pace("tool_work", _TOO_MUCH_WORK, share=WORK_SHARE, wait_s=limits.wait_s)
        self._entries: dict[SessionKey, _Entry] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    async def open(self, account_id: UUID, address: Address) -> Session:
        """Opens a session that is not stored under a key yet."""
        await self._pace.wait(account_id, CALL_CPU_S)
        async with self._calls.place(account_id):
            return await self._open(account_id, address)

    async def _open(self, account_id: UUID, address: Address) -> Session:
        spend = partial(self._pace.spend, account_id)
        session = Session(self._egress, account_id, address, self._timeouts, spend)
        await session.open()
        return session

    def add(self, account_id: UUID, key: SessionKey, session: Session) -> None:
        """Stores an open session."""
        self._remove(key)
        self._replace_older(key)
        if self._make_room(account_id):
            self._entries[key] = _Entry(account_id, session, used_at=time.monotonic())
            self._start_sweeper()
        else:
            self.close_in_background(session)

    @contextlib.asynccontextmanager
    async def use(
        self, account_id: UUID, key: SessionKey, address: Callable[[], Address]
    ) -> AsyncIterator[Session]:
        """The server's session. Opens one if none is open."""
        await self._pace.wait(account_id, CALL_CPU_S)
        async with self._calls.place(account_id):
            entry = self._entry(account_id, key)
            entry.users += 1
            try:
                yield await self._opened(entry, address)
            finally:
                entry.users -= 1
                self._leave(key, entry)

    def _entry(self, account_id: UUID, key: SessionKey) -> _Entry:
        entry = self._entries.get(key)
        if entry is not None and entry.session is not None and entry.session.closed:
            self._replace(key)
            entry = None
        if entry is None:
            self._replace_older(key)
            entry = _Entry(account_id)
            # A caller can have read the server just before it changed. Its session is not kept.
            if not any(each[0] == key[0] and each > key for each in self._entries):
                self._entries[key] = entry
                self._start_sweeper()
        return entry

    async def _opened(self, entry: _Entry, address: Callable[[], Address]) -> Session:
        failures = entry.failures
        async with entry.opening:
            if entry.failure is not None and entry.failures > failures:
                # Somebody else tried meanwhile. If all tried in turn, the last would wait long.
                raise entry.failure
            try:
                return await self._try_to_open(entry, address)
            except (ServerError, RateLimited) as error:
                entry.failures += 1
                entry.failure = error
                raise

    async def _try_to_open(self, entry: _Entry, address: Callable[[], Address]) -> Session:
        if not entry.has_place:
            await self._in_use.enter(entry.account_id)
            entry.has_place = True
        if entry.session is None:
            # Never more sessions are in use than can be open, so there is room.
            self._make_room(entry.account_id)
            entry.session = await self._open(entry.account_id, address())
        return entry.session

    def _leave(self, key: SessionKey, entry: _Entry) -> None:
        entry.used_at = time.monotonic()
        if entry.users:
            return
        if entry.has_place:
            entry.has_place = False
            self._in_use.leave(entry.account_id)
        kept = self._entries.get(key) is entry
        if entry.session is None or entry.session.closed:
            if kept:
                del self._entries[key]
            kept = False
        if entry.session is not None and not kept:
            # It ended, or it was replaced or removed while it was in use.
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
        """Closes the sessions of older revisions."""
        server_id, revision = key
        older = [each for each in self._entries if each[0] == server_id and each[1] < revision]
        for each in older:
            self._replace(each)

    def _replace(self, key: SessionKey) -> None:
        """Closes a session that gets no more calls. Calls that are under way end first."""
        if self._entries[key].users:
            # The last user closes it.
            del self._entries[key]
        else:
            self._remove(key)

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

    def _make_room(self, account_id: UUID) -> bool:
        """Closes the session that was unused for longest, if one more would be too many."""
        open_now = [each for each in self._entries.values() if each.session is not None]
        own = [each for each in open_now if each.account_id == account_id]
        if len(own) >= self._limits.account_sessions:
            return self._close_unused(account_id)
        return len(open_now) < self._limits.sessions or self._close_unused()

    def _close_unused(self, account_id: UUID | None = None) -> bool:
        unused = [
            (entry.used_at, key)
            for key, entry in self._entries.items()
            if not entry.users and account_id in (None, entry.account_id)
        ]
        if unused:
            self._remove(min(unused)[1])
        return bool(unused)

    def _start_sweeper(self) -> None:
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        """Closes idle sessions."""
        while self._entries:
            await asyncio.sleep(self._limits.idle_s / 4)
            cutoff = time.monotonic() - self._limits.idle_s
            for key, entry in list(self._entries.items()):
                if not entry.users and entry.used_at < cutoff:
                    self._remove(key)
