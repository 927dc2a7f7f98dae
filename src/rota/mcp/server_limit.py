"""The number of tool servers an account can connect. Each variant chooses one of these rules."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rota.platform.db import AccountReader

# Far above normal use. It limits what one account can cost.
MAX_SERVERS = 50


@dataclass(frozen=True, slots=True)
class Holder:
    """The facts about an account that the rules depend on."""

    tier: str
    # Whether the account has the connect pass, paid or on trial.
    has_pass: bool


ServerLimit = Callable[[Holder], int]
HasPass = Callable[[AccountReader], Awaitable[bool]]


def same_for_all(_: Holder) -> int:
    return MAX_SERVERS


def without_pass(tier: str, servers: int) -> ServerLimit:
    """Limits accounts of this tier to `servers`, unless they have the connect pass. A company
    cannot have the pass. Without a limit, anyone could create companies instead of buying it."""

    def limit(holder: Holder) -> int:
        return servers if holder.tier == tier and not holder.has_pass else MAX_SERVERS

    return limit
