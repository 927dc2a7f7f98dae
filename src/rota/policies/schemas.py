"""Public schemas of policies."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from rota.accounts.model import Policy
from rota.platform.http.schemas import Body, Wire, doc

Approvers = TypeAliasType(
    "Approvers",
    Annotated[
        Literal["anyone", "named"],
        doc(
            "Who can approve and reject in a company. `anyone`: every member. `named`: owners, "
            "admins, and members with the right `approver`.",
            "named",
        ),
    ],
)


class PutApprovals(Body):
    """Who can approve, and what waits for approval."""

    second_person: Annotated[
        bool,
        doc(
            "Whether nobody can approve what they shaped. Turning it on needs two approvers. When "
            "it is turned off, reviews that are already waiting stay under it.",
            False,
        ),
    ]
    approvers: Annotated[Approvers, doc("Who can approve and reject.")]
    max_cost_cents: Annotated[
        Annotated[int, Field(ge=0, le=10_000_000)] | None,
        doc(
            "A run with a higher budget waits for approval before it starts. Null: no limit.",
            None,
            500,
        ),
    ] = None

    @property
    def policy(self) -> Policy:
        return Policy(self.second_person, self.approvers == "anyone", self.max_cost_cents)


class PutPolicies(Body):
    """All policies of the account."""

    approvals: Annotated[PutApprovals, doc("The policy for approvals.")]


class AccountApprovals(Wire):
    """Who can approve, and what waits for approval."""

    second_person: Annotated[bool, doc("Whether nobody can approve what they shaped.", False)]
    approvers: Annotated[Approvers, doc("Who can approve and reject.")]
    max_cost_cents: Annotated[
        int | None,
        doc("A run with a higher budget waits for approval. Null: no limit.", None, 500),
    ]


class PoliciesResponse(Wire):
    """The policies of the account."""

    approvals: Annotated[AccountApprovals, doc("The policy for approvals.")]

    @classmethod
    def of(cls, policy: Policy) -> "PoliciesResponse":
        return cls(
            approvals=AccountApprovals(
                second_person=policy.second_person,
                approvers="anyone" if policy.anyone_approves else "named",
                max_cost_cents=policy.max_cost_cents,
            )
        )
