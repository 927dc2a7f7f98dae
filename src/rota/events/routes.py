"""Endpoints: the events of an account, as a stream or as a list."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import AUTHORIZATION, allowed, caller_of, secured_router
from rota.events.access import visibility_of
from rota.events.messages import StillAllowed, Wanted
from rota.events.schemas import Event, EventsResponse
from rota.events.stream import Streams
from rota.platform.errors import ApiError
from rota.platform.http.components import ref
from rota.platform.http.schemas import Limit, QueryInt, Several, shared

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


Types = Annotated[
    list[str],
    Several.like(
        r"[a-z_]{1,50}\.[a-z_]{1,50}",
        "must be a type such as task.completed; separate several with commas",
        most=50,
    ),
]


def _wants_list(accept: str) -> bool:
    """Whether a client prefers JSON. Without a preference, it gets the stream."""
    quality = {"application/json": 0.0, "text/event-stream": 0.0}
    for part in accept.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        if kind in quality:
            quality[kind] = next(map(_quality, parameters), 1.0)
    return quality["application/json"] > quality["text/event-stream"]


def _quality(parameter: str) -> float:
    try:
        return float(parameter.removeprefix("q="))
    except ValueError:
        return 1.0


def still_allowed(request: Request, authenticator: Authenticator) -> StillAllowed:
    """A check that the stream's credentials are still valid, and show the same events of the same
    account."""
    before = caller_of(request.scope)
    shown = before.account_id, visibility_of(before)

    async def check(since: float | None) -> bool:
        try:
            caller = await authenticator.authenticate(
                request.scope.get(AUTHORIZATION),
                request.headers.get("x-service-account"),
                since=since,
            )
        except ApiError as error:
            if error.is_about_service:
                raise
            return False
        # `X-Service-Account: company` can select another company after a removal.
        return (caller.account_id, visibility_of(caller)) == shown

    return check


def event_routes(streams: Streams, authenticator: Authenticator) -> APIRouter:
    router = secured_router("Events")

    @router.get(
        "/api/events",
        summary="Stream or list the events of the account",
        response_model=EventsResponse,
        responses={200: {"content": {"text/event-stream": {"schema": ref("schemas", "Event")}}}},
    )
    async def account_events(
        request: Request,
        caller: Annotated[Caller, Depends(allowed("tasks:read"))],
        last_event_id: LastEventId = None,
        after: After = None,
        type: Annotated[  # noqa: A002
            Types | None,
            Query(
                description="Only events of this type, or of one of several types separated by "
                "commas.",
                examples=[["task.completed", "task.failed"]],
            ),
        ] = None,
        limit: Limit = 50,
    ) -> Response:
        """Sends the events of the account as server-sent events, from now on or after the
        sequence number that you send. The stream stays open. With `Accept: application/json`, the
        response is a page of stored events instead, oldest first, from the first event or after
        the number that you send. `limit` applies to the page only.

        Each message of the stream has the lines `id` (the sequence number), `event` (the type) and
        `data` (an `Event` in JSON):

        ```
        id: 42
        event: task.completed
        data: {"id":"evt_01a19b98725776ca890c192cd3ac94af","sequence":42,"type":"task.completed",…}
        ```

        A session sees every event. An API key sees the events that its scopes allow: those of
        tasks, and with `billing:read`, `mcp:read` or `webhooks:read` also those of money, tool
        servers or webhooks. Sequence numbers then have gaps.

        A comment line is sent after every 15 seconds without an event. After a disconnect, send the
        last `id` as Last-Event-ID: no event is lost or sent twice. An account with too many open
        streams gets 429 `RATE_LIMITED`.
        """
        start = last_event_id if last_event_id is not None else after
        visibility, types = visibility_of(caller), frozenset(type or ())
        if _wants_list(request.headers.get("accept", "")):
            events, total, newest = await streams.page(
                caller.account_id, start or 0, visibility, types, limit
            )
            found = [Event.of(event) for event in events]
            page = EventsResponse(events=found, total=total, last_sequence=newest)
            return Response(page.model_dump_json(by_alias=True), media_type="application/json")
        if start is None:
            start = await streams.last_sequence(caller.account_id)
        return streams.open(
            Wanted(
                caller.account_id,
                start,
                still_allowed(request, authenticator),
                sees=lambda event: (
                    visibility.covers(event.type) and (not types or event.type in types)
                ),
            )
        )

    return router
