"""Companies: their members and invitations."""

from typing import TypeAlias

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._generated import operations
from rota_sdk._requests import UNSET, Unset, change, creation, id_of

CompanyRef: TypeAlias = str | models.Account
MemberRef: TypeAlias = str | models.Member
InvitationRef: TypeAlias = str | models.Invitation


class Companies(AsyncResource):
    """Companies. They need a session: pass its token as `api_key`."""

    async def create(self, *, name: str, idempotency_key: str | None = None) -> models.Company:
        """Creates a company that the user owns. Select it with `with_options(account=…)`."""
        response = await self._call(
            operations.create_company,
            body=models.CreateCompany(name=name),
            idempotency_key=idempotency_key,
        )
        return response.account

    async def get(self, company: CompanyRef) -> models.Company:
        """The company, with its seats."""
        return (await self._call(operations.get_company, {"id": id_of(company)})).account

    async def update(self, company: CompanyRef, *, name: str | Unset = UNSET) -> models.Company:
        """Changes the name."""
        body = change(models.PatchCompany, name=name)
        response = await self._call(operations.patch_company, {"id": id_of(company)}, body=body)
        return response.account

    def members(
        self, company: CompanyRef, *, page_size: int | None = None
    ) -> AsyncPages[models.Member]:
        """The members, in the order in which they joined."""
        return self._offset_list(
            operations.list_members,
            lambda r: r.members,
            page_size,
            lambda each: each.user_id,
            {"id": id_of(company)},
        )

    async def update_member(
        self,
        company: CompanyRef,
        member: MemberRef,
        *,
        role: models.Role | Unset = UNSET,
        approver: bool | Unset = UNSET,
    ) -> models.Member:
        """Changes the role of a member, or whether the member can approve."""
        body = change(models.PatchMember, role=role, approver=approver)
        path = _path_of(company, member)
        return (await self._call(operations.patch_member, path, body=body)).member

    async def remove_member(self, company: CompanyRef, member: MemberRef) -> None:
        """Removes a member, or lets the user leave. Takes effect within one second."""
        await self._end(operations.delete_member, _path_of(company, member))

    def invitations(
        self, company: CompanyRef, *, page_size: int | None = None
    ) -> AsyncPages[models.Invitation]:
        """The open invitations, newest first, without their links."""
        return self._offset_list(
            operations.list_invitations,
            lambda r: r.invitations,
            page_size,
            lambda each: each.id,
            {"id": id_of(company)},
        )

    async def invite(
        self,
        company: CompanyRef,
        *,
        email: str,
        role: models.Role,
        approver: bool | None = None,
        idempotency_key: str | None = None,
    ) -> models.InvitedResponse:
        """Invites a person. Send `url` to them yourself: it is shown only here.

        If the connection breaks before the response arrives, `url` is None: delete the invitation
        and create another.
        """
        body = creation(models.CreateInvitation, email=email, role=role, approver=approver)
        return await self._call(
            operations.create_invitation,
            {"id": id_of(company)},
            body=body,
            idempotency_key=idempotency_key,
        )

    async def delete_invitation(self, company: CompanyRef, invitation: InvitationRef) -> None:
        """Deletes the invitation. Its link stops working."""
        path = {"id": id_of(company), "invitationId": id_of(invitation)}
        await self._end(operations.delete_invitation, path)

    async def get_invitation(self, token: str) -> models.ReceivedInvitation:
        """What the user is invited to. `token` is what follows `#` in the link."""
        return (await self._call(operations.get_invitation, {"token": token})).invitation

    async def accept_invitation(
        self, token: str, *, idempotency_key: str | None = None
    ) -> models.Company:
        """Joins the company. `token` is what follows `#` in the link."""
        response = await self._call(
            operations.accept_invitation, {"token": token}, idempotency_key=idempotency_key
        )
        return response.account


def _path_of(company: CompanyRef, member: MemberRef) -> dict[str, str]:
    user_id = member if isinstance(member, str) else member.user_id
    return {"id": id_of(company), "userId": user_id}
