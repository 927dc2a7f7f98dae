"""The Caller of a request: its user, its account and its permissions."""

from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

from rota.accounts.model import Kind, Role
from rota.auth.rights import Right, has_right

Scope = Literal[
    "tasks:read",
    "tasks:write",
    "tasks:approve",
    "agents:read",
    "mcp:read",
    "mcp:write",
    "mcp:invoke",
    "billing:read",
    "billing:write",
    "audit:read",
    "webhooks:read",
    "webhooks:write",
]
ALL_SCOPES: tuple[Scope, ...] = get_args(Scope)
# These must be named: a key is a program, and an approval is a decision of a person. The audit
# trail shows what everybody does, and a webhook sends what happens to an address of any choice.
_NAMED_SCOPES = ("tasks:approve", "audit:read", "webhooks:write")
# The scopes of a key that names none.
DEFAULT_SCOPES = tuple(scope for scope in ALL_SCOPES if scope not in _NAMED_SCOPES)


@dataclass(frozen=True, slots=True)
class Caller:
    user_id: UUID
    account_id: UUID
    account_kind: Kind
    role: Role
    # The tier of the selected account, and the tier of the user's personal account.
    tier: str
    user_tier: str
    # None for a session, which has all scopes.
    scopes: frozenset[str] | None
    # One of these is set: the credential of the request.
    session_id: UUID | None
    key_id: UUID | None = None
    # An access token of an identity provider: its name in the audit trail.
    token: str | None = None
    # Whether a member can approve. Owners and admins always can.
    approver: bool = False
    # The right that the route needs. The transactions of the request check it again.
    right: Right | None = None

    def has_scope(self, scope: Scope) -> bool:
        return self.scopes is None or scope in self.scopes

    def has_right(self, right: Right | None) -> bool:
        return has_right(self.role, self.approver, right)
