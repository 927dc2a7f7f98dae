# Generated from rota_sdk/_async: do not edit.
"""The events of the account, and the state of the service."""

from collections.abc import Sequence

from rota_sdk import models
from rota_sdk._events import decoded_event
from rota_sdk._generated import operations
from rota_sdk._paging import Sequences
from rota_sdk._requests import Request, parameters
from rota_sdk._sync.pages import Pages
from rota_sdk._sync.resource import Resource
from rota_sdk._sync.streams import AccountEvents


class Events(Resource):
    def list(
        self,
        *,
        after: int = 0,
        type: str | Sequence[str] | None = None,  # noqa: A002
        page_size: int | None = None,
    ) -> Pages[models.Event]:
        """The stored events, oldest first, after a sequence number."""
        return Pages(
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
    ) -> AccountEvents:
        """The events of the account as they happen, from now on or after a sequence number.

        Without a number, it begins when you enter it with `with`, or with the first event
        that you ask for. So enter it before you do what you wait for. It has no end: close it, or
        use it in `with`. To follow many tasks, use this instead of one stream for each.
        """
        request = Request.of(operations.account_events, query=parameters(type=type))
        return AccountEvents(self._transport, request, decoded_event, after)


class Health(Resource):
    """The state of the service. Needs no credentials."""

    def live(self) -> models.LiveResponse:
        return self._call(operations.live)

    def ready(self) -> models.ReadyResponse:
        """Raises ServiceUnavailableError if the service cannot handle requests."""
        return self._call(operations.ready)

    def metrics(self) -> str:
        """The metrics of this process in the text format of Prometheus."""
        request = Request.of(operations.metrics)
        return (self._transport.send(request)).text
