"""Which events of an account a caller can see."""

from dataclasses import dataclass

from rota.auth.caller import Caller, Scope
from rota.auth.rights import Right

# The scope that an API key needs, for each family of types.
SCOPE_OF: dict[str, Scope] = {
    "task": "tasks:read",
    "schedule": "tasks:read",
    "step": "tasks:read",
    "rule": "tasks:read",
    "account": "tasks:read",
    "credits": "billing:read",
    "subscription": "billing:read",
    "mcp": "mcp:read",
    "webhook": "webhooks:read",
}
# The right that a member of a company needs, for families that not every member sees.
RIGHT_OF: dict[str, Right] = {"key": "keys", "invitation": "members", "webhook": "webhooks"}


@dataclass(frozen=True, slots=True)
class EventVisibility:
    """The families of types that a caller sees: some of them, or all without the hidden ones."""

    families: frozenset[str] | None
    hidden: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        return self.families is None and not self.hidden

    def covers(self, event_type: str) -> bool:
        family = event_type.partition(".")[0]
        if self.families is not None:
            return family in self.families
        return family not in self.hidden


def visibility_of(caller: Caller) -> EventVisibility:
    """Events about keys, members and sessions, and types without a scope, are for sessions only. In
    a company, events about keys, invitations and webhooks are for those who can manage them."""
    if caller.session_id is not None:
        return EventVisibility(
            None, frozenset(name for name, right in RIGHT_OF.items() if not caller.has_right(right))
        )
    return EventVisibility(
        frozenset(
            name
            for name, scope in SCOPE_OF.items()
            if caller.has_scope(scope) and caller.has_right(RIGHT_OF.get(name))
        )
    )
