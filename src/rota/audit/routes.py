"""Endpoints: the audit trail, and the keys that sign heads and receipts."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from starlette.requests import Request
from starlette.responses import Response

from rota.audit.queries import Filter
from rota.audit.schemas import AuditActor, AuditKey, AuditKeysResponse, AuditResponse
from rota.audit.service import AuditTrail
from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import AUTHORIZATION, allowed, public_router, secured_router
from rota.platform import ids
from rota.platform.db import NO_USER
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.http import examples
from rota.platform.http.schemas import BodyTimestamp, Limit, Offset, Several, Text

NDJSON = "application/x-ndjson"
READ = allowed("audit:read", right="audit")

Actions = Annotated[
    list[str],
    Several.like(
        r"[a-z_]{1,50}(\.[a-z_]{1,50})?",
        "must be an action such as task.approved, or the part before the dot",
        most=50,
    ),
]


def audit_routes(trail: AuditTrail, authenticator: Authenticator) -> APIRouter:
    router = secured_router("Audit")

    @router.get(
        "/api/audit",
        summary="List or export the audit trail",
        response_model=AuditResponse,
        responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}},
    )
    async def list_audit(
        request: Request,
        caller: Annotated[Caller, Depends(READ)],
        action: Annotated[
            Actions | None,
            Query(
                description="Only these actions, separated by commas. The part before the dot "
                "stands for all actions of a family.",
                examples=[["task.approved", "key"]],
            ),
        ] = None,
        actor: Annotated[
            AuditActor | None, Query(description="Only what this kind of actor did.")
        ] = None,
        user_id: Annotated[
            Text | None,
            Query(
                alias="userId",
                max_length=255,
                description="Only what this user did.",
                examples=[examples.USER_ID],
            ),
        ] = None,
        resource: Annotated[
            Text | None,
            Query(
                max_length=255,
                description="Only what was done to the resource with this ID.",
                examples=[examples.TASK_ID],
            ),
        ] = None,
        from_: Annotated[
            BodyTimestamp | None,
            Query(alias="from", description="Only entries of this time or later."),
        ] = None,
        to: Annotated[
            BodyTimestamp | None, Query(description="Only entries before this time.")
        ] = None,
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> Response:
        """Returns who did what to which resource, newest first, with the signed head of the trail.
        Filters combine: an entry must match all of them.

        With `Accept: application/x-ndjson`, the response is the whole trail instead, without
        filters: a line of JSON for each entry, oldest first, with everything that its hash covers,
        and the signed head as the last line. Without that line, the export is not complete.
        """
        if NDJSON in request.headers.get("accept", ""):
            whole = "An export is always the whole trail. Leave this out."
            if wrong := [FieldError(name, whole) for name in request.query_params]:
                raise ValidationFailed.of(*wrong)
            return StreamingResponse(
                trail.export(caller, lambda: _still_allowed(request, caller, authenticator)),
                media_type=NDJSON,
            )
        filters = Filter(
            actions=action or (),
            actor=actor,
            # What cannot be the ID of a user finds nothing, as any other that is unknown.
            user_id=None if user_id is None else ids.from_wire("user", user_id) or NO_USER,
            resource=resource,
            since=from_,
            until=to,
        )
        page = AuditResponse.of(await trail.page(caller, filters, limit, offset))
        return Response(page.model_dump_json(by_alias=True), media_type="application/json")

    return router


async def _still_allowed(request: Request, caller: Caller, authenticator: Authenticator) -> Caller:
    found = await authenticator.authenticate_again(
        caller, request.scope.get(AUTHORIZATION), request.headers.get("x-service-account")
    )
    return READ.check(found)


def audit_key_routes(trail: AuditTrail) -> APIRouter:
    router = public_router("Audit")

    @router.get("/.well-known/audit-keys.json", summary="Get the public keys of heads and receipts")
    async def audit_keys() -> AuditKeysResponse:
        """Returns the keys that sign heads and receipts, as a JSON Web Key Set. It keeps the keys
        that no longer sign."""
        keys = [AuditKey.model_validate(key) for key in trail.signer.public_keys()]
        return AuditKeysResponse(keys=keys)

    return router
