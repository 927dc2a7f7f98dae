"""What differs between variants. Features receive the values that they need, not the variant."""

from collections.abc import Mapping
from dataclasses import dataclass

from rota.agents.access import AgentAccess
from rota.credits.money import of_cents
from rota.limits.result import Ceilings
from rota.mcp.server_limit import ServerLimit
from rota.plans.allowance import TierAllowance


@dataclass(frozen=True, slots=True)
class Tier:
    name: str
    ceilings: Ceilings
    # An account's share of busy workers, relative to an account of weight 1.
    weight: float = 1.0
    # Price and allowance per month, for each seat if the tier has seats.
    price_cents: int = 0
    allowance_cents: int = 0
    # The minimum number of seats. A tier with seats is for companies only.
    min_seats: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    # From the lowest to the highest.
    tiers: tuple[Tier, ...]
    # Whether a new user starts with a trial of the personal add-on.
    signup_trial: bool
    # Which agents a tier can use, and which tiers see their models.
    agent_access: AgentAccess
    # How many tool servers an account can connect.
    servers: ServerLimit
    # The monthly price of the personal add-on. None if the variant does not sell it.
    pass_price_cents: int | None = None

    @property
    def lowest_tier(self) -> str:
        return self.tiers[0].name

    def tier(self, name: str) -> Tier:
        """The tier with this name. A tier of another variant counts as the lowest."""
        return next((tier for tier in self.tiers if tier.name == name), self.tiers[0])

    def ceilings_of(self, tier: str) -> Ceilings:
        return self.tier(tier).ceilings

    @property
    def sells_plans(self) -> bool:
        return any(tier.price_cents for tier in self.tiers)

    def tier_allowance(self, overrides_cents: Mapping[str, int]) -> TierAllowance:
        """The monthly allowance of each tier, with the operator's overrides."""

        def allowance(tier: str, seats: int | None) -> int:
            found = self.tier(tier)
            seat_cents = overrides_cents.get(found.name, found.allowance_cents)
            return of_cents(seat_cents * (seats or 1 if found.min_seats else 1))

        return allowance

    def weight_of(self, tier: str) -> float:
        return self.tier(tier).weight
