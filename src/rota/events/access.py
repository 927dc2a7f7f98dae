"""Which events of an account a caller can see."""

from rota.auth.caller import Caller, Scope

# The scope that an API key needs, for each family of types.
SCOPE_OF: dict[str, Scope] = {
    "task": "tasks:read",
    "credits": "billing:read",
    "subscription": "billing:read",
    "mcp": "mcp:read",
}


def may_see(caller: Caller, event_type: str) -> bool:
    """Events about keys and sessions, and types without a scope, are for sessions only. In a
    company, events about keys are for those who can manage them."""
    family = event_type.partition(".")[0]
    if family in SCOPE_OF:
        return caller.has_scope(SCOPE_OF[family])
    if family == "key" and caller.role == "member":
        return False
    return caller.session_id is not None
