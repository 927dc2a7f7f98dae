"""What can differ between variants. Features are handed parts of this, never the whole."""

from dataclasses import dataclass

from rota.agents.gating import Gating
from rota.limits.verdict import Ceilings
from rota.mcp.allowance import Allowance


@dataclass(frozen=True, slots=True)
class Tier:
    name: str
    ceilings: Ceilings
    # An account's share of busy workers, beside one of weight 1.
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    # From the lowest to the highest.
    tiers: tuple[Tier, ...]
    # Whether a new user starts with a trial of the personal add-on.
    signup_trial: bool
    # Which tier opens which agents, and who is told their models.
    gating: Gating
    # How many tool servers an account may connect.
    servers: Allowance

    @property
    def lowest_tier(self) -> str:
        return self.tiers[0].name

    def tier(self, name: str) -> Tier:
        """The tier of that name; one of another variant's counts as the lowest."""
        return next((tier for tier in self.tiers if tier.name == name), self.tiers[0])

    def ceilings_of(self, tier: str) -> Ceilings:
        return self.tier(tier).ceilings

    def weight_of(self, tier: str) -> float:
        return self.tier(tier).weight
