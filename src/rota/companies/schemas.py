"""Public schemas of companies and their members."""

from typing import Annotated

from pydantic import ConfigDict

from rota.accounts import model
from rota.accounts.members import Seats
from rota.auth.schemas import Account, Role
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import (
    EXTENDS,
    Body,
    Count,
    Timestamp,
    Total,
    Visible,
    Wire,
    doc,
    resource_of,
)

CompanyName = Annotated[
    str,
    doc("The display name, 1 to 100 characters.", "Acme", min_length=1, max_length=100),
    Visible,
]


class CreateCompany(Body):
    """A company to create."""

    name: CompanyName


class PatchCompany(Body):
    """What to change."""

    name: CompanyName | None = None


@resource_of(CreateCompany, PatchCompany)
class Company(Account):
    """A company account, with its seats."""

    model_config = ConfigDict(json_schema_extra={EXTENDS: "Account"})

    seats: Annotated[
        int | None,
        doc("How many members the plan or the tier allows. Null: any number.", None, 100),
    ]
    members: Annotated[Count, doc("How many members there are.")]

    @classmethod
    def of(cls, account: model.Account, seats: Seats) -> "Company":  # type: ignore[override]
        return cls(**dict(Account.of(account)), seats=seats.limit, members=seats.taken)


class CompanyResponse(Wire):
    """A company."""

    account: Annotated[Company, doc("The company.")]


class PatchMember(Body):
    """What to change."""

    role: Annotated[Role | None, doc("The new role. Only an owner can add or change owners.")] = (
        None
    )
    approver: Annotated[
        bool | None,
        doc(
            "Whether the member can approve. Owners and admins always can. An owner or admin who "
            "becomes a member cannot, unless this is true.",
            True,
        ),
    ] = None


@resource_of(PatchMember)
class Member(Wire):
    """A member of a company."""

    user_id: Annotated[str, doc("The ID of the user, `user_…`.", examples.USER_ID)]
    name: Annotated[str | None, doc("The name of the user. Null if unknown.", "Ada Example")]
    email: Annotated[
        str | None,
        doc(
            "The last address that the user's identity provider has verified. Null: none.",
            "ada@example.com",
        ),
    ]
    role: Annotated[Role, doc("The role of the member.")]
    approver: Annotated[bool, doc("Whether the member can approve.", True)]
    joined_at: Annotated[Timestamp, doc("When the member joined.", examples.SIGNED_UP)]

    @classmethod
    def of(cls, member: model.Member) -> "Member":
        return cls(
            user_id=ids.to_wire("user", member.user_id),
            name=member.name,
            email=member.email,
            role=member.role,
            approver=member.approver,
            joined_at=member.created_at,
        )


class MemberResponse(Wire):
    """A member."""

    member: Annotated[Member, doc("The member.")]


class MembersResponse(Wire):
    """A page of members."""

    members: Annotated[list[Member], doc("The members, in the order in which they joined.")]
    total: Total
