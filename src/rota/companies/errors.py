"""Why a change of a company is refused."""

from rota.platform.cell import Misdirected
from rota.platform.errors import Conflict, Forbidden, NotFound


class CompanyNotFound(NotFound):
    """One message for companies of others and for companies that do not exist."""

    def __init__(self) -> None:
        super().__init__("Company not found. GET /api/me lists your accounts.")


class TooManyCompanies(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A user can create at most {limit} companies. Ask the operator of this service to "
            "create more."
        )


class MemberNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("Member not found. GET /api/companies/{id}/members lists the members.")


class OwnerRequired(Forbidden):
    def __init__(self) -> None:
        super().__init__("Only an owner can add, change or remove an owner. Ask an owner.")


class LastOwner(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The company has no other owner. Make another member an owner first, or erase the "
            "company."
        )


class InvitationOfAnotherCell(Misdirected):
    """A member has an account in the cell of the company. This session is of another cell."""

    def __init__(self, cell: str) -> None:
        super().__init__(
            f"The company of this invitation is in cell {cell}, and your account is in another "
            "cell. Ask for an invitation to an address that you have not signed in with here. "
            "Then sign out, open its link and sign in with that address: programs send the header "
            f"Rota-Cell: {cell} with the sign-in."
        )


class InvitationNotFound(NotFound):
    """One message for unknown, used, deleted and expired invitations."""

    def __init__(self) -> None:
        super().__init__(
            "Invitation not found. It was used or deleted, or it has expired. Ask an owner or "
            "admin of the company for a new one."
        )


class AlreadyInvited(Conflict):
    def __init__(self, email: str) -> None:
        super().__init__(
            f"{email} is already invited. To send a new link, delete the invitation first."
        )


class AddressOfMember(Conflict):
    def __init__(self, email: str) -> None:
        super().__init__(
            f"{email} already belongs to a member of this company. Change that member instead."
        )


class TooManyInvitations(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A company can have at most {limit} open invitations. Delete some first.")


class AlreadyMember(Conflict):
    def __init__(self) -> None:
        super().__init__("You are already a member of this company.")


class AddressNotVerified(Forbidden):
    """The session has no verified address, or not the one that was invited."""

    def __init__(self, email: str | None) -> None:
        if email is None:
            message = (
                "Your identity provider did not confirm your email address. Confirm it there, "
                "sign in again, and open the invitation again."
            )
        else:
            message = (
                f"The invitation is for a different address, not {email}. Sign in with the address "
                "that the invitation was sent to, or ask for an invitation for this one."
            )
        super().__init__(message)


class AlwaysApprover(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Owners and admins can always approve. For a person who must not approve, use "
            "the role `member`."
        )
