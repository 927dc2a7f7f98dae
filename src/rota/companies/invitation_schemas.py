"""Public schemas of invitations."""

from typing import Annotated

from rota.auth.schemas import Role
from rota.companies import queries
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Body, ShownOnce, Timestamp, Total, Wire, doc, resource_of

# Written out, because languages disagree about which control characters are white space.
_PART = r"[^@\s\x00-\x1f\x7f-\x9f\ufeff]+"
_EMAIL = rf"^{_PART}@{_PART}\.{_PART}$"


class CreateInvitation(Body):
    """A person to invite."""

    email: Annotated[
        str,
        doc(
            "The address of the person, as their identity provider verifies it.",
            "grace@example.com",
            max_length=320,
            pattern=_EMAIL,
        ),
    ]
    role: Annotated[Role, doc("The role. Only an owner can invite owners.", "member")]
    approver: Annotated[
        bool, doc("Whether a member can approve. Owners and admins always can.", False)
    ] = False


@resource_of(CreateInvitation)
class Invitation(Wire):
    """An open invitation."""

    id: Annotated[str, doc("The ID of the invitation, `inv_…`.", examples.INVITATION_ID)]
    email: Annotated[str, doc("The address that is invited, in lower case.", "grace@example.com")]
    role: Annotated[Role, doc("The role that the person gets.")]
    approver: Annotated[bool, doc("Whether the person will be able to approve.", False)]
    created_by: Annotated[str, doc("The user who created it, `user_…`.", examples.USER_ID)]
    created_at: Annotated[Timestamp, doc("When it was created.", examples.CREATED)]
    expires_at: Annotated[Timestamp, doc("When it stops working.", "2026-11-09T09:30:00.000Z")]

    @classmethod
    def of(cls, invitation: queries.Invitation) -> "Invitation":
        return cls(
            id=ids.to_wire("inv", invitation.id),
            email=invitation.email,
            role=invitation.role,
            approver=invitation.approver,
            created_by=ids.to_wire("user", invitation.created_by),
            created_at=invitation.created_at,
            expires_at=invitation.expires_at,
        )


class InvitedResponse(Wire):
    """An invitation and its link."""

    invitation: Annotated[Invitation, doc("The invitation.")]
    # The link contains the token.
    url: Annotated[
        ShownOnce,
        doc(
            "The link to send to the person. It is shown only once: a repeated request with the "
            "same Idempotency-Key gets null.",
            f"https://rota.example.com/invitation#{examples.INVITATION_TOKEN}",
        ),
    ]


class InvitationsResponse(Wire):
    """A page of open invitations."""

    invitations: Annotated[list[Invitation], doc("The invitations, newest first.")]
    total: Total


class ReceivedInvitation(Wire):
    """An open invitation, as the person who has the link sees it."""

    account_id: Annotated[str, doc("The ID of the company, `acct_…`.", examples.COMPANY_ID)]
    account_name: Annotated[str, doc("The name of the company.", "Acme")]
    role: Annotated[Role, doc("The role that you get.")]
    approver: Annotated[bool, doc("Whether you will be able to approve.", False)]
    invited_by: Annotated[
        str | None, doc("The name of the member who invites you. Null if unknown.", "Ada Example")
    ]
    expires_at: Annotated[Timestamp, doc("When it stops working.", "2026-11-09T09:30:00.000Z")]


class ReceivedInvitationResponse(Wire):
    """An invitation that you have received."""

    invitation: Annotated[ReceivedInvitation, doc("The invitation.")]
