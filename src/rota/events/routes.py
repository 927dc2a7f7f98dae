"""The account's live event stream."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.requests import Request

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.events.stream import StillAllowed, Streams
from rota.platform.errors import ApiError
from rota.platform.http.schemas import QueryInt

MAX_SEQUENCE = 2**53

Sequence = Annotated[QueryInt, Field(ge=0, le=MAX_SEQUENCE)]
LastEventId = Annotated[
    Sequence | None,
    Header(
        description="The number of the last event that was received; the stream goes on after it."
    ),
]
After = Annotated[
    Sequence | None,
    Query(description="As Last-Event-ID, for clients that cannot set headers. 0 is the beginning."),
]


def still_allowed(request: Request, authenticator: Authenticator) -> StillAllowed:
    """A check that the stream's credentials are still valid."""

    async def check() -> bool:
        try:
            await authenticator.authenticate(
                request.headers.get("authorization"), request.headers.get("x-service-account")
            )
        except ApiError:
            return False
        return True

    return check


def event_routes(streams: Streams, authenticator: Authenticator) -> APIRouter:
    router = secured_router("Events")

    @router.get(
        "/api/events",
        summary="Live events of the account",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )
    async def account_events(
        request: Request,
        caller: Annotated[Caller, Depends(allowed("tasks:read"))],
        last_event_id: LastEventId = None,
        after: After = None,
    ) -> StreamingResponse:
        """Server-sent events. Begins with what happens next, or after the given number."""
        start = last_event_id if last_event_id is not None else after
        if start is None:
            start = await streams.last_sequence(caller.account_id)
        return streams.open(caller.account_id, start, still_allowed(request, authenticator))

    return router
