"""A standing rule, and what makes it void."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.platform import ids, json
from rota.tasks.model import Actor, Credential

# The conditions of all rules in force of an account, as JSON. Older accounts can have more: of one
# tool and agent, only this much is read, because a worker reads it for each call.
MAX_BYTES_IN_FORCE = 256 * 1024

RuleState = Literal["active", "used", "expired", "revoked", "void"]


@dataclass(frozen=True, slots=True)
class Rule:
    id: UUID
    server_id: UUID
    tool: str
    agent: str
    # With another revision, definition or version, the rule is void.
    server_revision: int
    definition_hash: str
    agent_version: int
    # A condition for each argument, as canonical JSON.
    arguments: str
    expires_at: datetime
    max_uses: int
    uses: int
    created_by: UUID
    created_by_name: str | None
    created_at: datetime
    revoked_at: datetime | None = None

    @property
    def uses_left(self) -> int:
        return self.max_uses - self.uses

    @property
    def conditions(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = json.exact(self.arguments)
        return found

    @property
    def credential(self) -> Credential:
        """With what a call of the rule is decided, as reviews store it."""
        return {
            "name": self.created_by_name,
            "via": "rule",
            "keyId": None,
            "ruleId": ids.to_wire("rule", self.id),
        }

    @property
    def decider(self) -> Actor:
        """Who decides about a call of the rule, as reviews store it."""
        return {**self.credential, "userId": ids.to_wire("user", self.created_by)}


@dataclass(frozen=True, slots=True)
class RuleDependencies:
    """What rules depend on, as it is now."""

    server_revisions: Mapping[UUID, int]
    # The accepted definitions, by server and tool.
    definition_hashes: Mapping[tuple[UUID, str], str]
    agent_versions: Mapping[str, int]
    # Those who can approve, and when they joined the company. None: it is their own account.
    approving_since: Mapping[UUID, datetime | None]

    def why_void(self, rule: Rule) -> str | None:
        """Why the rule does not work any more. None if it does."""
        if self.server_revisions.get(rule.server_id) != rule.server_revision:
            return "The tool server was changed or disconnected."
        if self.definition_hashes.get((rule.server_id, rule.tool)) != rule.definition_hash:
            return "The accepted definition of the tool has changed."
        if self.agent_versions.get(rule.agent) != rule.agent_version:
            return (
                "The version of the agent has changed, or the agent was removed from the catalog."
            )
        if rule.created_by not in self.approving_since:
            return "The user who made the rule can no longer approve."
        joined_at = self.approving_since[rule.created_by]
        if joined_at is not None and joined_at > rule.created_at:
            return "The user who made the rule has since left the company."
        return None

    def state_of(self, rule: Rule, now: datetime) -> RuleState:
        if rule.revoked_at is not None:
            return "revoked"
        if rule.uses >= rule.max_uses:
            return "used"
        if rule.expires_at <= now:
            return "expired"
        return "void" if self.why_void(rule) else "active"
