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
            sold = ", ".join(tier.name for tier in self._tiers.values() if tier.price_cents)
            raise _refused("plan", f"is no plan; the plans are {sold}")
        if not tier.price_cents:
            raise _refused("plan", f"{tier.name} costs nothing; cancel the subscription instead")
        if tier.min_seats is None:
            if seats is not None:
                raise _refused("seats", f"the plan {tier.name} has no seats")
            return Plan(tier.name, 1)
        if seats is None:
            current_seats = current.seats if current and self.seats(current) else 0
            seats = max(tier.min_seats, current_seats)
        if seats < tier.min_seats:
            raise _refused("seats", f"the plan {tier.name} has at least {tier.min_seats} seats")
        if kind != "company":
            raise Forbidden(f"The plan {tier.name} is for companies. Select a company account.")
        return Plan(tier.name, seats)


def _refused(field: str, message: str) -> ValidationFailed:
    return ValidationFailed.of(FieldError(field, message))


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
