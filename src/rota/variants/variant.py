"""What can differ between variants. Features are handed parts of this, never the whole."""

from collections.abc import Mapping
from dataclasses import dataclass

from rota.agents.access import AgentAccess
from rota.credits.allowance import AllowanceOf
from rota.credits.money import of_cents
from rota.limits.result import Ceilings
from rota.mcp.allowance import Allowance


@dataclass(frozen=True, slots=True)
class Tier:
    name: str
    ceilings: Ceilings
    # An account's share of busy workers, beside one of weight 1.
    weight: float = 1.0
    # What it costs and what it lets an account spend on models, each month; for each seat
    # where it has seats.
    price_cents: int = 0
    allowance_cents: int = 0
    # Sold by the seat, to companies only, and never fewer than these.
    min_seats: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    # From the lowest to the highest.
    tiers: tuple[Tier, ...]
    # Whether a new user starts with a trial of the personal add-on.
    signup_trial: bool
    # Which tier opens which agents, and who is told their models.
    agent_access: AgentAccess
    # How many tool servers an account may connect.
    servers: Allowance
    # What the personal add-on costs each month; None where there is none.
    pass_price_cents: int | None = None

    @property
    def lowest_tier(self) -> str:
        return self.tiers[0].name

    def tier(self, name: str) -> Tier:
        """The tier of that name; one of another variant's counts as the lowest."""
        return next((tier for tier in self.tiers if tier.name == name), self.tiers[0])

    def ceilings_of(self, tier: str) -> Ceilings:
        return self.tier(tier).ceilings

    @property
    def sells_plans(self) -> bool:
        return any(tier.price_cents for tier in self.tiers)

    def allowance_of(self, changes: Mapping[str, int]) -> AllowanceOf:
        """What a tier may spend each month, with the operator's own figures in cents."""

        def allowance(tier: str, seats: int | None) -> int:
            found = self.tier(tier)
            cents = changes.get(found.name, found.allowance_cents)
            return of_cents(cents * (seats or 1 if found.min_seats else 1))

        return allowance

    def weight_of(self, tier: str) -> float:
        return self.tier(tier).weight
