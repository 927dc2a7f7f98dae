"""What the members of a company can do, by role.

Every member works with tasks. Each route declares the right that it needs beyond that.
"""

from typing import Literal

from rota.accounts.model import Role

Right = Literal[
    "approve", "keys", "servers", "billing", "members", "audit", "policies", "webhooks", "data"
]

# For the message of an error: only owners and admins of a company can …
ACTIONS: dict[Right, str] = {
    "keys": "manage its API keys",
    "servers": "manage its tool servers",
    "billing": "change its plan and billing",
    "members": "manage the company and its members",
    "audit": "read its audit trail",
    "policies": "change its policies",
    "webhooks": "manage its webhooks",
}


def has_right(role: Role, approver: bool, right: Right | None) -> bool:
    """Whether a member can do this. `approver` is a right that a member has or not. Only owners
    can export and erase all data."""
    if right == "data":
        return role == "owner"
    return right is None or role != "member" or (right == "approve" and approver)
