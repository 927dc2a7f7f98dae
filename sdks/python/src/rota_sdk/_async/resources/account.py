"""The events of the account, and the state of the service."""

from collections.abc import Sequence

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._async.streams import AsyncAccountEvents
from rota_sdk._events import decoded_event
from rota_sdk._generated import operations
from rota_sdk._paging import Sequences
from rota_sdk._requests import Request, parameters


class Events(AsyncResource):
    def list(
        self,
        *,
        after: int = 0,
        type: str | Sequence[str] | None = None,  # noqa: A002
        page_size: int | None = None,
    ) -> AsyncPages[models.Event]:
        """The stored events, oldest first, after a sequence number."""
        return AsyncPages(
            self._transport,
            operations.account_events,
            lambda r: r.events,
            lambda: Sequences(page_size, after, lambda event: event.sequence),
            query=parameters(type=type),
        )

    def follow(
        self,
        *,
        after: int | None = None,
        type: str | Sequence[str] | None = None,  # noqa: A002
    ) -> AsyncAccountEvents:
        """The events of the account as they happen, from now on or after a sequence number.

        Without a number, it begins when you enter it with `async with`, or with the first event
        that you ask for. So enter it before you do what you wait for. It has no end: close it, or
        use it in `async with`. To follow many tasks, use this instead of one stream for each.
        """
        request = Request.of(operations.account_events, query=parameters(type=type))
        return AsyncAccountEvents(self._transport, request, decoded_event, after)


class Health(AsyncResource):
    """The state of the service. Needs no credentials."""

    async def live(self) -> models.LiveResponse:
        return await self._call(operations.live)

    async def ready(self) -> models.ReadyResponse:
        """Raises ServiceUnavailableError if the service cannot handle requests."""
        return await self._call(operations.ready)

    async def metrics(self) -> str:
        """The metrics of this process in the text format of Prometheus."""
        request = Request.of(operations.metrics)
        return (await self._transport.send(request)).text
