# Generated from rota_sdk/_async: do not edit.
"""Companies: their members and invitations."""

from typing import TypeAlias

from rota_sdk import models
from rota_sdk._generated import operations
from rota_sdk._requests import UNSET, Unset, change, creation, id_of
from rota_sdk._sync.pages import Pages
from rota_sdk._sync.resource import Resource

CompanyRef: TypeAlias = str | models.Account
MemberRef: TypeAlias = str | models.Member
InvitationRef: TypeAlias = str | models.Invitation


class Companies(Resource):
    """Companies. They need a session: pass its token as `api_key`."""

    def create(self, *, name: str, idempotency_key: str | None = None) -> models.Company:
        """Creates a company that the user owns. Select it with `with_options(account=…)`."""
        response = self._call(
            operations.create_company,
            body=models.CreateCompany(name=name),
            idempotency_key=idempotency_key,
        )
        return response.account

    def get(self, company: CompanyRef) -> models.Company:
        """The company, with its seats."""
        return (self._call(operations.get_company, {"id": id_of(company)})).account

    def update(self, company: CompanyRef, *, name: str | Unset = UNSET) -> models.Company:
        """Changes the name."""
        body = change(models.PatchCompany, name=name)
        response = self._call(operations.patch_company, {"id": id_of(company)}, body=body)
        return response.account

    def members(self, company: CompanyRef, *, page_size: int | None = None) -> Pages[models.Member]:
        """The members, in the order in which they joined."""
        return self._offset_list(
            operations.list_members,
            lambda r: r.members,
            page_size,
            lambda each: each.user_id,
            {"id": id_of(company)},
        )

    def update_member(
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
        return (self._call(operations.patch_member, path, body=body)).member

    def remove_member(self, company: CompanyRef, member: MemberRef) -> None:
        """Removes a member, or lets the user leave. Takes effect within one second."""
        self._end(operations.delete_member, _path_of(company, member))

    def invitations(
        self, company: CompanyRef, *, page_size: int | None = None
    ) -> Pages[models.Invitation]:
        """The open invitations, newest first, without their links."""
        return self._offset_list(
            operations.list_invitations,
            lambda r: r.invitations,
            page_size,
            lambda each: each.id,
            {"id": id_of(company)},
        )

    def invite(
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
        return self._call(
            operations.create_invitation,
            {"id": id_of(company)},
            body=body,
            idempotency_key=idempotency_key,
        )

    def delete_invitation(self, company: CompanyRef, invitation: InvitationRef) -> None:
        """Deletes the invitation. Its link stops working."""
        path = {"id": id_of(company), "invitationId": id_of(invitation)}
        self._end(operations.delete_invitation, path)

    def get_invitation(self, token: str) -> models.ReceivedInvitation:
        """What the user is invited to. `token` is what follows `#` in the link."""
        return (self._call(operations.get_invitation, {"token": token})).invitation

    def accept_invitation(
        self, token: str, *, idempotency_key: str | None = None
    ) -> models.Company:
        """Joins the company. `token` is what follows `#` in the link."""
        response = self._call(
            operations.accept_invitation, {"token": token}, idempotency_key=idempotency_key
        )
        return response.account


def _path_of(company: CompanyRef, member: MemberRef) -> dict[str, str]:
    user_id = member if isinstance(member, str) else member.user_id
    return {"id": id_of(company), "userId": user_id}
