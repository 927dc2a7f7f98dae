"""Endpoints: invitations to a company."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import UserRoute, secured_router
from rota.auth.schemas import DeletedResponse
from rota.companies import invitation_schemas as schemas
from rota.companies.access import as_user, in_company
from rota.companies.invitation_schemas import (
    CreateInvitation,
    InvitationsResponse,
    InvitedResponse,
    ReceivedInvitationResponse,
)
from rota.companies.invitations import Invitations
from rota.companies.routes import CompanyId
from rota.companies.schemas import CompanyResponse
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset, Text, shared
from rota.platform.idempotency import IdempotencyKey

InvitationId = Annotated[
    Text,
    Path(
        alias="invitationId",
        description="The ID of the invitation.",
        examples=[examples.INVITATION_ID],
    ),
]
Token = Annotated[
    Text,
    Path(
        description="The token: what follows `#` in the link.",
        examples=[examples.INVITATION_TOKEN],
        json_schema_extra=shared("InvitationToken"),
    ),
]


def invitation_routes(invitations: Invitations, authenticator: Authenticator) -> APIRouter:
    router = secured_router("Companies", UserRoute)
    User = Annotated[Caller, Depends(as_user(authenticator))]  # noqa: N806
    Manager = Annotated[Caller, Depends(in_company(authenticator, right="members"))]  # noqa: N806

    @router.post(
        "/api/companies/{id}/invitations",
        status_code=201,
        response_model=InvitedResponse,
        summary="Invite a person",
        responses=documented(404, 409),
    )
    async def create_invitation(
        caller: Manager,
        id: CompanyId,  # noqa: A002
        body: CreateInvitation,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Creates an invitation that works once, for 7 days. Send `url` to the person yourself: it
        is not shown again. Returns 409 if the address is already invited, or no seat is free."""
        return respond(await invitations.create(caller, body, idempotency_key))

    @router.get(
        "/api/companies/{id}/invitations",
        summary="List invitations",
        responses=documented(404),
    )
    async def list_invitations(
        caller: Manager,
        id: CompanyId,  # noqa: A002
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> InvitationsResponse:
        """Returns a page of the open invitations, newest first, without their links."""
        found, total = await invitations.page(caller, limit, offset)
        return InvitationsResponse(
            invitations=[schemas.Invitation.of(each) for each in found], total=total
        )

    @router.delete(
        "/api/companies/{id}/invitations/{invitationId}",
        summary="Delete an invitation",
        responses=documented(404),
    )
    async def delete_invitation(
        caller: Manager,
        id: CompanyId,  # noqa: A002
        invitation_id: InvitationId,
    ) -> DeletedResponse:
        """Deletes the invitation. Its link stops working."""
        await invitations.delete(caller, ids.from_wire("inv", invitation_id))
        return DeletedResponse(id=invitation_id)

    @router.get(
        "/api/invitations/{token}",
        summary="Get an invitation by its token",
        responses=documented(404),
    )
    async def get_invitation(caller: User, token: Token) -> ReceivedInvitationResponse:
        """Returns what you are invited to. Changes nothing."""
        return ReceivedInvitationResponse(invitation=await invitations.received(caller, token))

    @router.post(
        "/api/invitations/{token}/accept",
        response_model=CompanyResponse,
        summary="Accept an invitation",
        responses=documented(404, 409),
    )
    async def accept_invitation(
        caller: User, token: Token, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Makes you a member. The identity provider that you signed in with must have verified the
        address of the invitation (403). Returns 409 if no seat is free, and
        if you are a member already, for example because you have accepted it before."""
        return respond(await invitations.accept(caller, token, idempotency_key))

    return router
