"""Endpoints: the event stream of an account."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from pydantic import Field
from starlette.requests import Request

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import AUTHORIZATION, allowed, secured_router
from rota.events.access import may_see
from rota.events.schemas import Event
from rota.events.stream import EventStream, StillAllowed, Streams
from rota.platform.errors import ApiError
from rota.platform.http.schemas import QueryInt, shared

MAX_SEQUENCE = 2**53

Sequence = Annotated[QueryInt, Field(ge=0, le=MAX_SEQUENCE)]
LastEventId = Annotated[
    Sequence | None,
    Header(
        description="The sequence number of the last event that you received. The stream continues "
        "after it. Browsers send it automatically when they reconnect.",
        examples=[41],
        json_schema_extra=shared("LastEventId"),
    ),
]
After = Annotated[
    Sequence | None,
    Query(
        description="The same as Last-Event-ID, for clients that cannot set headers. 0 starts with "
        "the first event.",
        examples=[41],
        json_schema_extra=shared("After"),
    ),
]


def still_allowed(request: Request, authenticator: Authenticator) -> StillAllowed:
    """A check that the stream's credentials are still valid."""

    async def check() -> bool:
        try:
            await authenticator.authenticate(
                request.scope.get(AUTHORIZATION), request.headers.get("x-service-account")
            )
        except ApiError:
            return False
        return True

    return check


def event_routes(streams: Streams, authenticator: Authenticator) -> APIRouter:
    router = secured_router("Events")

    @router.get(
        "/api/events",
        summary="Stream the events of the account",
        response_class=EventStream,
        responses={200: {"model": Event}},
    )
    async def account_events(
        request: Request,
        caller: Annotated[Caller, Depends(allowed("tasks:read"))],
        last_event_id: LastEventId = None,
        after: After = None,
    ) -> EventStream:
        """Sends the events of the account as server-sent events, from now on or after the
        sequence number that you send. The stream stays open.

        Each message has the lines `id` (the sequence number), `event` (the type) and `data`
        (an `Event` in JSON):

        ```
        id: 42
        event: task.completed
        data: {"id":"evt_01a19b98725776ca890c192cd3ac94af","sequence":42,"type":"task.completed",…}
        ```

        A session sees every event. An API key sees the events that its scopes allow: task events,
        and with `billing:read` or `mcp:read` also those of money or tool servers. Sequence numbers
        then have gaps.

        A comment line is sent after every 15 seconds without an event. After a disconnect, send the
        last `id` as Last-Event-ID: no event is lost or sent twice. An account with too many open
        streams gets 429 `RATE_LIMITED`.
        """
        start = last_event_id if last_event_id is not None else after
        if start is None:
            start = await streams.last_sequence(caller.account_id)
        return streams.open(
            caller.account_id,
            start,
            still_allowed(request, authenticator),
            sees=lambda event: may_see(caller, event.type),
        )

    return router
