"""The text of a model call while it is written, from the worker to Redis.

Redis keeps the text so far of each task, and sends what is added to the watchers. A run never waits
for Redis: one task of the process sends whatever has been added since it last did, and while Redis
is down, nothing is sent. The watchers get a whole text from the database when its step is finished,
so a text that Redis loses is late, but not lost.
"""

import asyncio
from dataclasses import dataclass, replace
from hashlib import sha1
from importlib.resources import files
from typing import Self
from uuid import UUID

import structlog
from prometheus_client import Counter
from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError

from rota.platform import redis as redis_clients

log = structlog.get_logger()

SCRIPT = files(__package__).joinpath("live_text.lua").read_text()
SCRIPT_SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()

UNSENT = Counter("rota_live_text_unsent_total", "Times that live texts could not be sent to Redis.")

# Between two messages about the same text.
PAUSE_S = 0.02
SEND_TIMEOUT_S = 1.0
RECONNECT_S = 1.0
# A call takes up to 10 minutes. Redis keeps its text for that long after the last addition, and for
# a minute after the call has ended.
KEEP_S, KEEP_ENDED_S = 660, 60
# Watchers see the rest of a longer text when its step is finished.
MAX_BYTES = 1_000_000

OFFSET_BYTES = 10


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Orders the texts of a task. Whoever writes an older one is late."""

    run: int = 0
    # A slice that takes the run over has a higher fence.
    fence: int = 0
    step: int = 0
    # Earlier attempts of the call, which failed.
    attempt: int = 0
    # The provider stopped in the middle, so this attempt has no text anymore.
    discarded: bool = False

    BYTES = 41

    def encode(self) -> bytes:
        numbers = (self.run, self.fence, self.step, self.attempt, self.discarded)
        return b"%010d%010d%010d%010d%d" % numbers

    @classmethod
    def decode(cls, encoded: bytes) -> Self:
        run, fence, step, attempt = (int(encoded[at : at + 10]) for at in range(0, 40, 10))
        return cls(run, fence, step, attempt, encoded[40:41] == b"1")

    @property
    def place(self) -> tuple[int, int]:
        """The run and the step."""
        return self.run, self.step


def key_of(task_id: UUID) -> str:
    """The key of a task's text in Redis, and the channel of its watchers."""
    return f"live:{task_id.hex}"


class LiveText:
    """The text of one attempt of a model call."""

    __slots__ = ("_texts", "data", "ended", "key", "sent", "version")

    def __init__(self, texts: "LiveTexts", task_id: UUID, version: Version) -> None:
        self._texts = texts
        self.key = key_of(task_id)
        self.version = version
        self.data = bytearray()
        # How much of it Redis has.
        self.sent = 0
        self.ended = False

    def add(self, text: str) -> None:
        if len(self.data) < MAX_BYTES:
            self.data += text.encode()
            self._texts.send(self)

    def end(self) -> None:
        """The answer is whole."""
        self.ended = True
        if self.data:
            self._texts.send(self)

    def discard(self) -> None:
        """The call has failed. Another attempt starts over."""
        self.ended = True
        if self.data:
            self.version = replace(self.version, discarded=True)
            self.data, self.sent = bytearray(), 0
            self._texts.send(self)


class LiveTexts:
    """Sends the texts of this process."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        # In order. A dictionary, because a set has no order.
        self._due: dict[LiveText, None] = {}
        self._sender: asyncio.Task[None] | None = None

    def begin(self, task_id: UUID, version: Version) -> LiveText:
        return LiveText(self, task_id, version)

    def send(self, text: LiveText) -> None:
        self._due[text] = None
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def aclose(self) -> None:
        await redis_clients.end((self._sender,))

    async def _send(self) -> None:
        """Sends everything that is due in one exchange with Redis, then pauses."""
        while self._due:
            due, self._due = self._due, {}
            try:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await self._exchange(list(due))
            except (RedisError, OSError) as error:
                UNSENT.inc()
                log.warning("live_text_not_sent", error=repr(error))
                # An ended text is not worth another attempt: the database has it.
                self._due = {text: None for text in due if not text.ended} | self._due
                await asyncio.sleep(RECONNECT_S)
            else:
                await asyncio.sleep(PAUSE_S)

    async def _exchange(self, due: list[LiveText]) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        lengths = [len(text.data) for text in due]
        for text in due:
            pipeline.evalsha(
                SCRIPT_SHA,
                1,
                text.key,
                text.version.encode(),
                text.sent,
                bytes(text.data[text.sent :]),
                KEEP_ENDED_S if text.ended else KEEP_S,
            )
        replies = await pipeline.execute(raise_on_error=False)
        for text, length, reply in zip(due, lengths, replies, strict=True):
            if reply == 1:
                text.sent = length
            elif reply == 0:
                # Redis has lost the beginning.
                text.sent = 0
                self._due[text] = None
            elif isinstance(reply, NoScriptError):
                await self._redis.script_load(SCRIPT)
                self._due[text] = None
            elif isinstance(reply, Exception):
                raise reply
