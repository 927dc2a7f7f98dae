"""Public schemas of rules."""

import builtins
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import FailFast, Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import (
    Body,
    BodyTimestamp,
    Timestamp,
    Total,
    Wire,
    doc,
    example_of,
    resource_of,
)
from rota.rules import model
from rota.rules.model import Rule as StoredRule
from rota.rules.model import RuleDependencies

MAX_USES = 1_000_000
_CONDITIONS = {"title": {"any": True}}

RuleState = TypeAliasType(
    "RuleState",
    Annotated[
        model.RuleState,
        doc(
            "Whether a rule works. `used`: all its uses are counted. `expired`: its time has "
            "passed. `revoked`: a person has deleted it. `void`: something that it is bound to has "
            "changed, as `voidReason` says.",
            "active",
        ),
    ],
)


class Condition(Body):
    """What an argument must be: exactly one of `const`, `enum`, `min` and `max`, or `any`."""

    model_config = example_of("const")

    const: Annotated[Any, doc("Exactly this value.", "Onboarding checklist")] = None
    enum: Annotated[
        Annotated[list[Any], Field(min_length=1, max_length=100)] | None,
        doc("One of these values, at most 100.", ["low", "medium"]),
    ] = None
    min: Annotated[int | float | None, doc("A number that is not less than this.", 0)] = None
    max: Annotated[int | float | None, doc("A number that is not greater than this.", 100)] = None
    any: Annotated[
        Literal[True] | None, doc("Any value, and the argument can be absent.", True)
    ] = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        sent = self.model_fields_set
        is_range = bool(sent) and sent <= {"min", "max"}
        has_null = builtins.any(getattr(self, name) is None for name in sent - {"const"})
        if not (is_range or len(sent) == 1) or has_null:
            raise PydanticCustomError(
                "condition", "must have exactly one of const, enum, min and max, or any: true"
            )
        if self.min is not None and self.max is not None and self.min > self.max:
            raise PydanticCustomError("condition", "min must not be greater than max")
        return self


class ReviewedCall(Body):
    """A call in a review."""

    task_id: Annotated[str, doc("The ID of the task.", examples.TASK_ID)]
    item_id: Annotated[str, doc("The ID of the item in a review of the task.", "call-1-1-1")]


class CreateRule(Body):
    """A rule to make."""

    model_config = example_of("serverId", "tool", "agent", "arguments", "expiresAt", "maxUses")

    from_review: Annotated[
        ReviewedCall | None,
        doc(
            "The call that the rule is made from, instead of `serverId`, `tool` and `agent`. "
            "Without `arguments`, the rule covers calls with exactly the arguments of this one.",
        ),
    ] = None
    server_id: Annotated[
        str | None,
        doc("The ID of the tool server. Required without `fromReview`.", examples.SERVER_ID),
    ] = None
    tool: Annotated[
        Annotated[str, Field(max_length=128)] | None,
        doc("The name of the tool. Required without `fromReview`.", "create_draft"),
    ] = None
    agent: Annotated[
        Annotated[str, Field(max_length=64)] | None,
        doc("The name of the agent. Required without `fromReview`.", examples.AGENT),
    ] = None
    # FailFast: wrong conditions take longer to describe than to send.
    arguments: Annotated[
        Annotated[dict[Annotated[str, Field(max_length=200)], Condition], Field(max_length=100)]
        | None,
        doc(
            "A condition for each argument. An argument that is not named must be absent. Required "
            "without `fromReview`.",
            _CONDITIONS,
        ),
        FailFast(),
    ] = None
    expires_at: Annotated[
        BodyTimestamp, doc("When the rule ends. A time in the future.", "2099-01-31T12:00:00Z")
    ]
    max_uses: Annotated[
        int, doc("How many calls the rule approves, at most 1,000,000.", 20, ge=1, le=MAX_USES)
    ]


@resource_of(CreateRule)
class Rule(Wire):
    """Calls of a tool that an agent can make without a review."""

    id: Annotated[str, doc("The ID of the rule, `rule_…`.", examples.RULE_ID)]
    server_id: Annotated[str, doc("The ID of the tool server.", examples.SERVER_ID)]
    server_revision: Annotated[int, doc("The revision of the server that it is bound to.", 1)]
    tool: Annotated[str, doc("The name of the tool.", "create_draft")]
    definition_hash: Annotated[
        str, doc("The hash of the tool's definition that it is bound to.", examples.TOOL_HASH)
    ]
    agent: Annotated[str, doc("The name of the agent.", examples.AGENT)]
    agent_version: Annotated[int, doc("The version of the agent that it is bound to.", 1)]
    arguments: Annotated[
        dict[str, dict[str, Any]], doc("The condition for each argument.", _CONDITIONS)
    ]
    expires_at: Annotated[Timestamp, doc("When the rule ends.", examples.EXPIRES)]
    max_uses: Annotated[int, doc("How many calls it approves.", 20)]
    uses: Annotated[int, doc("How many calls it has approved.", 3)]
    state: Annotated[RuleState, doc("Whether it works.")]
    void_reason: Annotated[
        str | None,
        doc(
            "Why it is void. Null otherwise.",
            None,
            "The accepted definition of the tool has changed.",
        ),
    ]
    created_by: Annotated[str, doc("The user who made it, `user_…`.", examples.USER_ID)]
    created_by_name: Annotated[
        str | None, doc("The name of that user at that time. Null if unknown.", "Ada Example")
    ]
    created_at: Annotated[Timestamp, doc("When it was made.", examples.CREATED)]
    revoked_at: Annotated[
        Timestamp | None, doc("When it was deleted. Null if it was not.", None, examples.FINISHED)
    ]

    @classmethod
    def of(cls, rule: StoredRule, around: RuleDependencies, now: datetime) -> "Rule":
        state = around.state_of(rule, now)
        return cls(
            id=ids.to_wire("rule", rule.id),
            server_id=ids.to_wire("mcp", rule.server_id),
            server_revision=rule.server_revision,
            tool=rule.tool,
            definition_hash=rule.definition_hash,
            agent=rule.agent,
            agent_version=rule.agent_version,
            arguments=rule.conditions,
            expires_at=rule.expires_at,
            max_uses=rule.max_uses,
            uses=rule.uses,
            state=state,
            void_reason=around.why_void(rule) if state == "void" else None,
            created_by=ids.to_wire("user", rule.created_by),
            created_by_name=rule.created_by_name,
            created_at=rule.created_at,
            revoked_at=rule.revoked_at,
        )


class RuleResponse(Wire):
    """One rule."""

    rule: Annotated[Rule, doc("The rule.")]


class RulesResponse(Wire):
    """A page of rules."""

    rules: Annotated[list[Rule], doc("The rules on this page, newest first.")]
    total: Total
