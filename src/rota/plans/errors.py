"""Why a purchase, a cancellation or a resumption is refused."""

from rota.plans.queries import ProductKind
from rota.plans.states import State
from rota.platform.errors import Conflict, NotFound

_NOUNS: dict[ProductKind, str] = {"plan": "subscription", "connect_pass": "connect pass"}


class AlreadySubscribed(Conflict):
    def __init__(self, state: State) -> None:
        super().__init__(
            f"The plan {state.next_plan.name} already starts with the next period."
            if state.next_plan
            else f"The account already has the plan {state.plan.name}."
        )
        self.state = state


class PaymentOutstanding(Conflict):
    """The account has the plan, but its last payment failed."""

    def __init__(self, state: State) -> None:
        super().__init__(
            f"The account already has the plan {state.plan.name}, but its last payment failed. "
            "Pay the invoice that the payment processor sent, or cancel the subscription."
        )
        self.state = state


class CancellationPending(Conflict):
    def __init__(self, state: State) -> None:
        super().__init__(
            f"The subscription ends on {state.period_end.date()}. Resume it before you change "
            "the plan."
        )
        self.state = state


class ConcurrentChange(Conflict):
    def __init__(self) -> None:
        super().__init__("The subscription has just changed. Send the request again.")


class PeriodEnding(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The period of the subscription ends in a moment. Send the request again in a few "
            "minutes."
        )


class SeatsBelowMembers(Conflict):
    def __init__(self, seats: int, members: int) -> None:
        super().__init__(
            f"The company has {members} members, and the plan would have {seats} seats. Send "
            f"`seats` of at least {members}, or remove members first."
        )


class NotSubscribed(NotFound):
    def __init__(self, product: ProductKind) -> None:
        super().__init__(f"The account has no {_NOUNS[product]}. Buy one first.")
        self.product = product


class SubscriptionEnded(Conflict):
    def __init__(self, product: ProductKind) -> None:
        super().__init__(f"The {_NOUNS[product]} has ended. Buy a new one.")
        self.product = product


class AlreadyCancelled(Conflict):
    def __init__(self, product: ProductKind, state: State) -> None:
        super().__init__(
            f"The {_NOUNS[product]} is already cancelled and ends on {state.period_end.date()}."
        )
        self.product = product
        self.state = state


class NothingToResume(Conflict):
    def __init__(self, product: ProductKind) -> None:
        super().__init__(f"The {_NOUNS[product]} is not cancelled, so there is nothing to resume.")
        self.product = product


class PassAlreadyBought(Conflict):
    def __init__(self, state: State) -> None:
        advice = " Resume it instead." if state.cancel_at_period_end else ""
        super().__init__(f"The account already has the connect pass.{advice}")
        self.state = state
