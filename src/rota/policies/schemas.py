"""Public schemas of policies."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from rota.accounts.model import Policy, Retention, RetentionKind
from rota.platform.http.schemas import Body, Wire, doc, resource_of
from rota.policies.retention import MOST_DAYS

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
            "Whether a second person must approve: users cannot approve what they shaped. "
            "Turning it on requires two approvers. When "
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


Days = Annotated[int, Field(ge=1, le=MOST_DAYS)] | None


class PutRetention(Body):
    """How many days the account keeps what is finished."""

    tasks: Annotated[
        Days,
        doc("Tasks, after they have ended. Null: the default of the service.", None, 365),
    ] = None
    steps: Annotated[
        Days,
        doc("The steps of tasks that have ended. Null: the default of the service.", None, 90),
    ] = None
    events: Annotated[Days, doc("Events. Null: the default of the service.", None, 90)] = None
    audit: Annotated[Days, doc("Audit entries. Null: the default of the service.", None, 730)] = (
        None
    )

    @property
    def retention(self) -> Retention:
        return Retention(self.tasks, self.steps, self.events, self.audit)


class PutPolicies(Body):
    """All policies of the account."""

    approvals: Annotated[PutApprovals, doc("The policy for approvals.")]
    retention: Annotated[
        PutRetention | None,
        doc("How long data is kept. Without it, or with null, this stays as it is.", None),
    ] = None

    def policy(self, before: Retention) -> Policy:
        retention = before if self.retention is None else self.retention.retention
        return replace(self.approvals.policy, retention=retention)


class AccountApprovals(Wire):
    """Who can approve, and what waits for approval."""

    second_person: Annotated[bool, doc("Whether nobody can approve what they shaped.", False)]
    approvers: Annotated[Approvers, doc("Who can approve and reject.")]
    max_cost_cents: Annotated[
        int | None,
        doc("A run with a higher budget waits for approval. Null: no limit.", None, 500),
    ]


class AccountRetention(Wire):
    """Days after which something that is finished is deleted."""

    tasks: Annotated[int | None, doc("Tasks, after they have ended.", None, 365)]
    steps: Annotated[int | None, doc("The steps of tasks that have ended.", None, 90)]
    events: Annotated[int | None, doc("Events.", None, 90)]
    audit: Annotated[int | None, doc("Audit entries.", None, 730)]

    @classmethod
    def of(cls, days: Mapping[RetentionKind, int | None]) -> "AccountRetention":
        return cls.model_validate(dict(days))


@resource_of(PutPolicies)
class PoliciesResponse(Wire):
    """The policies of the account."""

    approvals: Annotated[AccountApprovals, doc("The policy for approvals.")]
    retention: Annotated[
        AccountRetention, doc("What the account has set. Null: the default of the service.")
    ]
    retention_in_effect: Annotated[
        AccountRetention, doc("What applies now. Null: nothing is deleted.")
    ]

    @classmethod
    def of(
        cls, policy: Policy, in_effect: Mapping[RetentionKind, int | None]
    ) -> "PoliciesResponse":
        own: dict[RetentionKind, int | None] = {
            kind: policy.retention.days(kind) for kind in in_effect
        }
        return cls(
            retention=AccountRetention.of(own),
            retention_in_effect=AccountRetention.of(in_effect),
            approvals=AccountApprovals(
                second_person=policy.second_person,
                approvers="anyone" if policy.anyone_approves else "named",
                max_cost_cents=policy.max_cost_cents,
            ),
        )
