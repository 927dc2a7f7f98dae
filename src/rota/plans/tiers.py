"""The tiers of a variant, and the rules for subscribing to them."""

from collections.abc import Sequence
from typing import Protocol

from rota.accounts.model import Kind
from rota.payments.port import CONNECT_PASS, Product
from rota.plans.states import Plan
from rota.platform.errors import FieldError, Forbidden, ValidationFailed

MAX_SEATS = 1_000_000
PASS_TITLE = "Connect pass"


class Tier(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def price_cents(self) -> int: ...
    @property
    def min_seats(self) -> int | None:
        """The minimum number of seats. None if the tier has no seats."""


class InvalidPlan(ValidationFailed):
    """A request for a plan or a number of seats that does not exist."""

    def __init__(self, field: str, message: str) -> None:
        failed = ValidationFailed.of(FieldError(field, message))
        super().__init__(failed.message, details=failed.details)


class PlanUnknown(InvalidPlan):
    def __init__(self, name: str, sold: Sequence[Tier]) -> None:
        names = ", ".join(tier.name for tier in sold)
        super().__init__("plan", f'Unknown plan "{name}". The plans are {names}.')
        self.name = name


class PlanFree(InvalidPlan):
    def __init__(self, tier: Tier) -> None:
        super().__init__(
            "plan", f"The plan {tier.name} is free. Cancel the subscription to change to it."
        )
        self.tier = tier


class PlanWithoutSeats(InvalidPlan):
    def __init__(self, tier: Tier) -> None:
        super().__init__("seats", f"The plan {tier.name} has no seats. Leave `seats` out.")
        self.tier = tier


class SeatsTooFew(InvalidPlan):
    def __init__(self, tier: Tier, seats: int) -> None:
        super().__init__(
            "seats", f"The plan {tier.name} needs at least {tier.min_seats} seats, not {seats}."
        )
        self.tier = tier
        self.seats = seats


class PlanNeedsCompany(Forbidden):
    def __init__(self, tier: Tier) -> None:
        super().__init__(f"The plan {tier.name} is for companies. Select a company account.")
        self.tier = tier


class Tiers:
    def __init__(self, tiers: Sequence[Tier]) -> None:
        self._tiers = {tier.name: tier for tier in tiers}
        self._positions = {tier.name: position for position, tier in enumerate(tiers)}
        self.lowest = tiers[0].name

    def __contains__(self, name: str) -> bool:
        return name in self._tiers

    def position(self, name: str) -> int:
        """The place in the list from the lowest to the highest. An unknown tier is the lowest."""
        return self._positions.get(name, 0)

    def seats(self, plan: Plan) -> int | None:
        """The number of seats. None if the plan has no seats."""
        tier = self._tiers.get(plan.name)
        return plan.seats if tier and tier.min_seats is not None else None

    def choose(self, name: str, seats: int | None, kind: Kind, current: Plan | None) -> Plan:
        """The requested plan. Without `seats`, the number of seats stays the same."""
        tier = self._tiers.get(name.lower())
        if tier is None:
            raise PlanUnknown(name, [sold for sold in self._tiers.values() if sold.price_cents])
        if not tier.price_cents:
            raise PlanFree(tier)
        if tier.min_seats is None:
            if seats is not None:
                raise PlanWithoutSeats(tier)
            return Plan(tier.name, 1)
        if seats is None:
            current_seats = current.seats if current and self.seats(current) else 0
            seats = max(tier.min_seats, current_seats)
        if seats < tier.min_seats:
            raise SeatsTooFew(tier, seats)
        if kind != "company":
            raise PlanNeedsCompany(tier)
        return Plan(tier.name, seats)


def products(tiers: Sequence[Tier], pass_cents: int | None) -> tuple[Product, ...]:
    """The products that the payment processor sells."""
    sold = [
        Product(tier.name, f"Rota {tier.name.capitalize()}", tier.price_cents)
        for tier in tiers
        if tier.price_cents
    ]
    if pass_cents is not None:
        sold.append(Product(CONNECT_PASS, f"Rota {PASS_TITLE}", pass_cents))
    return tuple(sold)
