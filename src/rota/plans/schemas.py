"""Public schemas of subscriptions and of the connect pass."""

from datetime import datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypeAliasType

from rota.auth.schemas import Tier
from rota.credits.money import available_cents
from rota.plans import queries, states, tiers
from rota.plans.allowance import TierAllowance
from rota.plans.states import State
from rota.plans.tiers import MAX_SEATS
from rota.platform.http import examples
from rota.platform.http.schemas import Body, Timestamp, Wire, doc, example_of, example_with

SubscriptionStatus = TypeAliasType(
    "SubscriptionStatus",
    Annotated[
        states.Status,
        doc(
            "`PAST_DUE` means that the last payment failed; the tier stays for a grace period.",
            "ACTIVE",
        ),
    ],
)
PeriodStart = Annotated[Timestamp, doc("When the paid period started.", examples.PERIOD_START)]
PeriodEnd = Annotated[Timestamp, doc("When the paid period ends.", examples.PERIOD_END)]
CancelAtPeriodEnd = Annotated[
    bool, doc("Whether it ends with the paid period instead of renewing.", False)
]
CheckoutUrl = Annotated[
    str,
    doc(
        "The page of the payment processor. Send the user there. Nothing changes before the "
        "payment is complete.",
        "https://checkout.stripe.com/c/pay/cs_test_a1b2c3",
    ),
]


class Subscribe(Body):
    """A plan to subscribe to."""

    model_config = example_of("plan")

    plan: Annotated[
        str,
        doc(
            "The name of the plan, in any case: `standard`, `advanced`, `corporate` or "
            "`enterprise`. To return to `basic`, cancel the subscription.",
            "standard",
            min_length=1,
            max_length=100,
        ),
    ]
    seats: Annotated[
        Annotated[int, Field(ge=1, le=MAX_SEATS)] | None,
        doc(
            "The number of seats, for `corporate` (at least 1) and `enterprise` (at least 100). "
            "Other plans have no seats.",
            100,
        ),
    ] = None


class Subscription(Wire):
    """The subscription of an account."""

    tier: Annotated[Tier, doc("The tier that the subscription gives now.", "STANDARD")]
    status: Annotated[SubscriptionStatus, doc("The state of the subscription.")]
    seats: Annotated[
        int | None, doc("The number of seats. Null if the plan has no seats.", None, 100)
    ]
    current_period_start: PeriodStart
    current_period_end: PeriodEnd
    cancel_at_period_end: CancelAtPeriodEnd
    downgrade_target: Annotated[
        Tier | None,
        doc(
            "The lower plan that starts after this period. Null if none is scheduled.",
            None,
            "STANDARD",
        ),
    ]
    downgrade_seats: Annotated[
        int | None,
        doc(
            "The number of seats from the next period on. Null if the next plan has no seats, or "
            "no change is scheduled.",
            None,
            5,
        ),
    ]


class SubscriptionsResponse(Wire):
    """The subscription and tier of the selected account."""

    subscription: Annotated[
        Subscription | None,
        doc(
            "The subscription. Null if the account never had one, and in variants that do not "
            "sell plans.",
            None,
        ),
    ]
    effective_tier: Annotated[Tier, doc("The tier of the selected account.")]
    user_tier: Annotated[Tier, doc("The tier of the user's personal account.")]


class SubscriptionResponse(Wire):
    """The subscription after the change."""

    subscription: Annotated[Subscription, doc("The subscription.")]


class CheckoutResponse(Wire):
    """A checkout page for a plan."""

    checkout_url: CheckoutUrl
    plan: Annotated[Tier, doc("The plan to pay for.", "STANDARD")]
    seats: Annotated[
        int | None, doc("The number of seats to pay for. Null if the plan has no seats.", None, 100)
    ]


class LowerPlanResponse(Wire):
    """A change to a lower plan, which needs no payment."""

    checkout_url: Annotated[None, doc("Always null: there is nothing to pay.", None)] = None
    subscription: Annotated[
        Subscription,
        doc(
            "The subscription. `downgradeTarget` is the next plan.",
            json_schema_extra=example_with(tier="ADVANCED", downgradeTarget="STANDARD"),
        ),
    ]


class PlanOffer(Wire):
    """A tier, with what it costs and gives."""

    tier: Annotated[Tier, doc("The tier.", "STANDARD")]
    price_cents: Annotated[
        int, doc("The price per month, for each seat if the tier has seats. 0 if free.", 2000)
    ]
    allowance_cents: Annotated[
        int, doc("What can be spent each month without a top-up, for each seat.", 1500)
    ]
    min_seats: Annotated[
        int | None, doc("The minimum number of seats. Null if the tier has no seats.", None)
    ]

    @classmethod
    def of(cls, tier: tiers.Tier, tier_allowance: TierAllowance) -> "PlanOffer":
        return cls(
            tier=tier.name.upper(),
            price_cents=tier.price_cents,
            allowance_cents=available_cents(tier_allowance(tier.name, 1)),
            min_seats=tier.min_seats,
        )


class PassOffer(Wire):
    """The connect pass, a personal add-on."""

    price_cents: Annotated[int, doc("The price per month.", 900)]


class PlansResponse(Wire):
    """What this deployment sells."""

    plans: Annotated[list[PlanOffer], doc("The tiers, from the lowest to the highest.")]
    connect_pass: Annotated[
        PassOffer | None, doc("The connect pass. Null if this deployment does not sell it.", None)
    ]
    takes_payments: Annotated[
        bool,
        doc(
            "Whether the balance can be topped up and plans can be bought. If not, the operator "
            "grants credit and sets tiers.",
            True,
        ),
    ]


class PassCheckoutResponse(Wire):
    """A checkout page for the connect pass."""

    checkout_url: CheckoutUrl


class PassBilling(Wire):
    """The paid connect pass of a personal account."""

    status: Annotated[SubscriptionStatus, doc("The state of the pass.")]
    current_period_start: PeriodStart
    current_period_end: PeriodEnd
    cancel_at_period_end: CancelAtPeriodEnd
    can_cancel: Annotated[bool, doc("Whether it can be cancelled now.", True)]
    can_resume: Annotated[bool, doc("Whether a cancellation can be undone now.", False)]

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
    """The trial that starts at the first sign-in. It needs no card and ends automatically."""

    started_at: Annotated[Timestamp, doc("When the trial started.", examples.SIGNED_UP)]
    ends_at: Annotated[Timestamp, doc("When the trial ends or ended.", "2026-10-19T08:12:44.108Z")]
    active: Annotated[bool, doc("Whether the trial is running now.", False)]

    @classmethod
    def of(cls, trial: queries.Trial, now: datetime) -> "Trial":
        return cls(started_at=trial.started_at, ends_at=trial.ends_at, active=trial.ends_at > now)


class PassBillingResponse(Wire):
    """The connect pass and the trial of a personal account."""

    billing: Annotated[
        PassBilling | None, doc("The paid pass. Null if the account never bought one.")
    ]
    trial: Annotated[Trial | None, doc("The trial. Null if the account had none.")]


class BillingResponse(Wire):
    """The connect pass after the change."""

    billing: Annotated[PassBilling, doc("The paid pass.")]
