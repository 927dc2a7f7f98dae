# Generated from rota_sdk/_async: do not edit.
"""Streams of events that survive any interruption: every event arrives once and in order."""

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from types import TracebackType
from typing import Generic, Self, TypeVar

from rota_sdk import errors
from rota_sdk._events import ENDED, TaskEvent
from rota_sdk._generated import operations
from rota_sdk._requests import Request
from rota_sdk._retries import RECONNECTS, backoff_s, delay_s, max_failures
from rota_sdk._sse import Decoder, Message
from rota_sdk._sync.transport import Transport
from rota_sdk.models import Event

E = TypeVar("E", bound=TaskEvent)

# A cut connection is the usual case, so the first attempt comes soon.
FIRST_S = 0.1
# A connection that was open for so long did not fail at once, so the next attempt comes soon again.
STEADY_S = 10.0


class EventStream(Generic[E]):
    """Events as they happen. Close it, or use it in `with`, if you stop before its end."""

    def __init__(
        self,
        transport: Transport,
        request: Request,
        decode: Callable[[Message], E | None],
        after: int | None = None,
    ) -> None:
        self._transport = transport
        self._request = request
        self._decode = decode
        # The sequence number of the last event. Store it to continue after it later.
        self.last_sequence = after
        # The last state of a task that an event named.
        self._status: str | None = None
        # How many connections in a row brought no event.
        self._idle = 0
        # Whether it was closed or nothing more can come. It can be continued after an error.
        self._has_ended = False
        self._events = self._follow()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> E:
        try:
            return next(self._events)
        except StopIteration:
            if self._has_ended:
                raise
        # The generator ended with an error or a cancellation. Another continues after the last
        # event.
        self._events = self._follow()
        return next(self._events)

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._has_ended = True
        self._events.close()

    def _begin(self) -> None:
        """Called before the first connection. It does nothing if it was done."""

    def _is_over(self) -> bool:
        """Whether nothing more can come after the events that are stored now."""
        return False

    def _follow(self) -> Generator[E, None]:
        self._begin()
        limit = max_failures(self._transport.options.max_retries)
        refused = 0
        is_over = False
        while True:
            started = time.monotonic()
            try:
                with self._transport.stream(self._request, self.last_sequence) as response:
                    # Connections that open and break later are not counted: a task can wait for a
                    # person for hours, and a proxy can cut streams all the time.
                    limit, refused = RECONNECTS, 0
                    decoder = Decoder()
                    for piece in response.iter_bytes():
                        for message in decoder.feed(piece):
                            event = self._take(message)
                            if event is not None:
                                self._idle = 0
                                # A task that was over has started again. Texts say nothing.
                                is_over = is_over and not isinstance(event, Event)
                                yield event
                # The service ended the stream: because nothing more can come, or because it stops.
                if is_over or self._status in ENDED:
                    self._has_ended = True
                    return
                is_over = self._is_over()
                wait_s = 0.0 if is_over else self._pause_s(started)
            except errors.RotaError as error:
                again_s = delay_s(error, self._idle, is_repeatable=True)
                if again_s is None or refused >= limit:
                    raise
                refused += 1
                is_cut = isinstance(error, errors.APIConnectionError)
                wait_s = self._pause_s(started) if is_cut else again_s
            self._idle += 1
            time.sleep(wait_s)

    def _pause_s(self, started: float) -> float:
        """How long to wait after a connection that broke."""
        if time.monotonic() - started > STEADY_S:
            self._idle = 0
        return backoff_s(self._idle, FIRST_S)

    def _take(self, message: Message) -> E | None:
        """The event of a message, if it is new."""
        event = self._decode(message)
        if isinstance(event, Event):
            if self.last_sequence is not None and event.sequence <= self.last_sequence:
                return None
            self.last_sequence = event.sequence
            self._status = event.data.get("status", self._status)
        return event


class TaskEvents(EventStream[TaskEvent]):
    """The events of one task. It ends when the task is completed, failed or cancelled."""

    def __init__(
        self,
        transport: Transport,
        request: Request,
        decode: Callable[[Message], TaskEvent | None],
        after: int | None,
        task_id: str,
    ) -> None:
        super().__init__(transport, request, decode, after)
        self._task_id = task_id

    def _is_over(self) -> bool:
        request = Request.of(operations.get_task, {"id": self._task_id})
        response = self._transport.call(operations.get_task, request)
        return response.task.status in ENDED


class AccountEvents(EventStream[Event]):
    """The events of an account. It has no end."""

    _has_begun = False

    def _begin(self) -> None:
        if self._has_begun:
            return
        limit = max_failures(self._transport.options.max_retries)
        # `company` can become another company while the stream is open. So its ID is sent at each
        # connection.
        if self._transport.options.account == "company":
            me = self._transport.call(operations.me, Request.of(operations.me), limit)
            self._request = self._request.of_account(me.account.id)
        # A stream without a number begins with the next event, at each connection. So the number
        # of the newest event is read once, and nothing is missing after a reconnect.
        if self.last_sequence is None:
            request = replace(self._request, query={"after": str(2**53)})
            page = self._transport.call(operations.account_events, request, limit)
            self.last_sequence = page.last_sequence
        self._has_begun = True

    def _take(self, message: Message) -> Event | None:
        event = super()._take(message)
        # The end of one task is not the end of the stream.
        self._status = None
        return event
