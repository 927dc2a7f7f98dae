"""Endpoints: companies and their members."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import UserRoute, secured_router
from rota.auth.schemas import DeletedResponse
from rota.companies import schemas
from rota.companies.access import as_user, in_company
from rota.companies.members import Members
from rota.companies.schemas import (
    CompanyResponse,
    CreateCompany,
    MemberResponse,
    MembersResponse,
    PatchCompany,
    PatchMember,
)
from rota.companies.service import Companies
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset, Text, path_id, shared
from rota.platform.idempotency import IdempotencyKey

CompanyId = Annotated[Text, path_id("company", examples.COMPANY_ID)]
UserId = Annotated[
    Text,
    Path(
        alias="userId",
        description="The ID of the member's user.",
        examples=[examples.USER_ID],
        json_schema_extra=shared("UserId"),
    ),
]


def company_routes(
    companies: Companies, members: Members, authenticator: Authenticator
) -> APIRouter:
    router = secured_router("Companies", UserRoute)
    User = Annotated[Caller, Depends(as_user(authenticator))]  # noqa: N806
    Joined = Annotated[Caller, Depends(in_company(authenticator))]  # noqa: N806
    Manager = Annotated[Caller, Depends(in_company(authenticator, right="members"))]  # noqa: N806
    Remover = Annotated[  # noqa: N806
        Caller, Depends(in_company(authenticator, right="members", own=True))
    ]

    @router.post(
        "/api/companies",
        status_code=201,
        response_model=CompanyResponse,
        summary="Create a company",
        responses=documented(409),
    )
    async def create_company(
        caller: User, body: CreateCompany, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Creates a company account that you own. It starts with the lowest tier.
        Select it with `X-Service-Account`. You can create at most 20 companies (409)."""
        return respond(await companies.create(caller, body, idempotency_key))

    @router.get("/api/companies/{id}", summary="Get a company", responses=documented(404))
    async def get_company(caller: Joined, id: CompanyId) -> CompanyResponse:  # noqa: A002
        """Returns the company, with its seats."""
        found = await companies.get(caller)
        return CompanyResponse(account=schemas.Company.of(found.account, found.seats))

    @router.patch("/api/companies/{id}", summary="Rename a company", responses=documented(404))
    async def patch_company(
        caller: Manager,
        id: CompanyId,  # noqa: A002
        body: PatchCompany,
    ) -> CompanyResponse:
        """Changes the name."""
        found = await companies.rename(caller, body)
        return CompanyResponse(account=schemas.Company.of(found.account, found.seats))

    @router.get("/api/companies/{id}/members", summary="List members", responses=documented(404))
    async def list_members(
        caller: Joined,
        id: CompanyId,  # noqa: A002
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> MembersResponse:
        """Returns a page of the members, in the order in which they joined."""
        found, total = await members.page(caller, limit, offset)
        return MembersResponse(members=[schemas.Member.of(each) for each in found], total=total)

    @router.patch(
        "/api/companies/{id}/members/{userId}",
        summary="Change a member",
        responses=documented(404, 409),
    )
    async def patch_member(
        caller: Manager,
        id: CompanyId,  # noqa: A002
        user_id: UserId,
        body: PatchMember,
    ) -> MemberResponse:
        """Changes the role of a member, or whether the member can approve. Takes effect within one
        second. Returns 409 for the last owner."""
        member = await members.change(caller, ids.from_wire("user", user_id), body)
        return MemberResponse(member=schemas.Member.of(member))

    @router.delete(
        "/api/companies/{id}/members/{userId}",
        summary="Remove a member",
        responses=documented(404, 409),
    )
    async def delete_member(
        caller: Remover,
        id: CompanyId,  # noqa: A002
        user_id: UserId,
    ) -> DeletedResponse:
        """Removes a member, or lets you leave. Within one second, the member's sessions lose access
        to the company and their event streams end. API keys and invitations that they created stop
        working, schedules that they saved pause, and their approvals in open reviews are withdrawn.
        Their tasks are kept. Returns 409 for the last owner."""
        await members.remove(caller.account_id, ids.from_wire("user", user_id), by=caller)
        return DeletedResponse(id=user_id)

    return router
