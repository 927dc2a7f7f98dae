"""Wire shapes of subscriptions and of the personal add-on."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from rota.plans import queries
from rota.plans.states import State, Status
from rota.plans.tiers import MAX_SEATS
from rota.platform.http.schemas import Body, Timestamp, Wire


class Subscribe(Body):
    plan: Annotated[str, Field(min_length=1, max_length=100, examples=["standard"])]
    seats: Annotated[int, Field(ge=1, le=MAX_SEATS)] | None = None


class Subscription(Wire):
    tier: Annotated[str, Field(description="What it gives now.", examples=["STANDARD"])]
    status: Status
    seats: Annotated[int | None, Field(description="Null where the plan has no seats.")]
    current_period_start: Timestamp
    current_period_end: Timestamp
    cancel_at_period_end: bool
    downgrade_target: Annotated[
        str | None, Field(description="The lower plan that follows when the period is over.")
    ]
    downgrade_seats: int | None


class SubscriptionsResponse(Wire):
    subscription: Subscription | None
    effective_tier: str
    user_tier: str


class SubscriptionResponse(Wire):
    subscription: Subscription


class CheckoutResponse(Wire):
    checkout_url: Annotated[str, Field(description="Where to pay; nothing changes before that.")]
    plan: str
    seats: int | None


class LowerPlanResponse(Wire):
    checkout_url: None = None
    subscription: Subscription


class PassCheckoutResponse(Wire):
    checkout_url: Annotated[str, Field(description="Where to pay; nothing changes before that.")]


class PassBilling(Wire):
    status: Status
    current_period_start: Timestamp
    current_period_end: Timestamp
    cancel_at_period_end: bool
    can_cancel: bool
    can_resume: bool

    @classmethod
    def of(cls, state: State) -> "PassBilling":
        return cls(
            status=state.status,
            current_period_start=state.period_start,
            current_period_end=state.period_end,
            cancel_at_period_end=state.cancel_at_period_end,
            can_cancel=state.live and not state.cancel_at_period_end,
            can_resume=state.live and state.cancel_at_period_end,
        )


class Trial(Wire):
    started_at: Timestamp
    ends_at: Timestamp
    active: bool

    @classmethod
    def of(cls, trial: queries.Trial, now: datetime) -> "Trial":
        return cls(started_at=trial.started_at, ends_at=trial.ends_at, active=trial.ends_at > now)


class PassBillingResponse(Wire):
    billing: PassBilling | None
    trial: Trial | None


class BillingResponse(Wire):
    billing: PassBilling
