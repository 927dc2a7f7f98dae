"""How many tool servers an account may connect. Variants choose among these rules."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rota.accounts.model import Kind
from rota.platform.db import AccountReader

# More than anybody needs; it bounds what one account costs.
MAX_SERVERS = 50


@dataclass(frozen=True, slots=True)
class Holder:
    """What the rules look at."""

    kind: Kind
    tier: str
    # The personal add-on, paid for or on trial.
    has_pass: bool


Allowance = Callable[[Holder], int]
HasPass = Callable[[AccountReader], Awaitable[bool]]


def same_for_all(_: Holder) -> int:
    return MAX_SERVERS


def without_pass(kind: Kind, tier: str, servers: int) -> Allowance:
    """Accounts of this kind and tier have so many, unless they hold the pass."""

    def allowance(holder: Holder) -> int:
        needs_pass = holder.kind == kind and holder.tier == tier
        return servers if needs_pass and not holder.has_pass else MAX_SERVERS

    return allowance
