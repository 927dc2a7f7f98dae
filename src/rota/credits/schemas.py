"""Public schemas of credits. Available cents round down; spent cents round up."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from rota.credits import forecasts, queries
from rota.credits.money import available_cents, exact_usd, spent_cents, usd
from rota.credits.queries import Balance
from rota.platform.http import examples
from rota.platform.http.schemas import Body, Count, Timestamp, Wire, doc, example_of

MIN_TOP_UP_CENTS = 500
MAX_TOP_UP_CENTS = 100_000
MAX_ALERT_CENTS = 10_000_000
WARNING_PERCENT = 80

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day(value: Any) -> Any:
    if isinstance(value, str):
        try:
            if _DATE.fullmatch(value):
                return date.fromisoformat(value)
        except ValueError:
            pass
        raise PydanticCustomError("day", "must be a day such as 2027-01-31")
    return value


Day = Annotated[
    date,
    BeforeValidator(_day),
    WithJsonSchema({"type": "string", "format": "date", "examples": ["2027-01-31"]}),
]


Cents = Annotated[int, Field(examples=[2_000])]
Micros = Annotated[int, Field(examples=[-11_700])]
Usd = Annotated[str, Field(examples=["12.34"])]
ExactUsd = Annotated[
    str, doc("US dollars with six decimals, as a string to keep it exact.", "0.011700")
]
AllowanceStatus = TypeAliasType(
    "AllowanceStatus",
    Annotated[
        Literal["normal", "warning", "depleted"],
        doc("`warning` from 80 percent, `depleted` at 100 percent.", "normal"),
    ],
)
GroupBy = TypeAliasType(
    "GroupBy",
    Annotated[
        queries.GroupBy,
        doc("What usage is grouped by. `day,agent` and `day,model` are for charts.", "day"),
    ],
)


class TopUp(Body):
    """An amount to buy."""

    amount_cents: Annotated[
        int,
        doc(
            "US cents, from 500 ($5) to 100000 ($1,000).",
            2_000,
            ge=MIN_TOP_UP_CENTS,
            le=MAX_TOP_UP_CENTS,
        ),
    ]


AllowOverflow = Annotated[
    bool,
    doc("Whether runs use the top-up balance when the monthly allowance is used up.", True),
]


ALERT_BELOW = (
    "US cents, from 0 to 10000000 ($100,000). When less than this is available, the event "
    "`credits.low` is sent once. Null sends none."
)


class PatchCreditSettings(Body):
    """New credit settings. Absent fields change nothing; one is needed."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    allow_overflow: Annotated[AllowOverflow | None, doc("Null changes nothing.", True)] = None
    alert_below_cents: Annotated[int | None, doc(ALERT_BELOW, 1_000, ge=0, le=MAX_ALERT_CENTS)] = (
        None
    )


class TopUpResponse(Wire):
    """A checkout page for a top-up."""

    checkout_url: Annotated[
        str,
        doc(
            "The page of the payment processor. Send the user there. The balance changes when "
            "the payment is complete.",
            "https://checkout.stripe.com/c/pay/cs_test_a1b2c3",
        ),
    ]
    amount: Annotated[Cents, doc("The amount in US cents, as requested.", 2_000)]


class CreditSettings(Wire):
    """The credit settings of an account."""

    allow_overflow: AllowOverflow
    alert_below_cents: Annotated[int | None, doc(ALERT_BELOW, 1_000)]

    @classmethod
    def of(cls, balance: Balance) -> "CreditSettings":
        alert_below = balance.alert_below
        return cls(
            allow_overflow=balance.allow_overflow,
            alert_below_cents=None if alert_below is None else available_cents(alert_below),
        )


class SettingsResponse(Wire):
    """The credit settings of an account."""

    settings: Annotated[CreditSettings, doc("The settings.")]


class UsageBar(Wire):
    """How much of this month's allowance is used, in US cents. All zero without an allowance."""

    used: Annotated[Cents, doc("Cents used.", 312)]
    total: Annotated[Cents, doc("Cents in the allowance.", 1_500)]
    remaining: Annotated[Cents, doc("Cents left.", 1_188)]
    percent: Annotated[int, doc("Percent used, rounded down.", 20)]
    status: Annotated[AllowanceStatus, doc("A summary of how much is used.")]
    resets_at: Annotated[
        Timestamp | None,
        doc(
            "When the next allowance starts. Null without an allowance, and until the next month "
            "is paid.",
            examples.PERIOD_END,
        ),
    ]

    @classmethod
    def of(cls, balance: Balance) -> "UsageBar":
        total = available_cents(balance.allowance_total)
        used = min(spent_cents(balance.allowance_used), total)
        # Computed from the exact amounts, so that a threshold is not shown before it is reached.
        percent = 100 * balance.allowance_used // max(balance.allowance_total, 1)
        return cls(
            used=used,
            total=total,
            remaining=total - used,
            percent=percent,
            status=_status(percent),
            resets_at=balance.resets_at,
        )


def _status(percent: int) -> AllowanceStatus:
    if percent >= 100:
        return "depleted"
    return "warning" if percent >= WARNING_PERCENT else "normal"


class BalanceAmounts(Wire):
    """The balance in US dollars and cents."""

    available_usd: Annotated[Usd, doc("US dollars available, as a string.", "31.88")]
    total_loaded_usd: Annotated[
        Usd,
        doc(
            "US dollars paid in since the account was created, minus refunds and disputes, as a "
            "string. Allowances and grants are not included.",
            "20.00",
        ),
    ]
    total_spent_usd: Annotated[
        Usd, doc("US dollars spent since the account was created, as a string.", "3.12")
    ]
    available_cents: Annotated[Cents, doc("Cents available.", 3_188)]
    reserved_cents: Annotated[Cents, doc("Cents on hold for runs that have not ended.", 0)]


class BalanceResponse(Wire):
    """The credits of an account."""

    model_config = example_of(
        "topUpCents",
        "totalAvailable",
        "totalLoadedCents",
        "totalSpentCents",
        "hasAllowance",
        "allowOverflow",
        "usageBar",
        "balance",
    )

    top_up_cents: Annotated[
        Cents, doc("Cents in the top-up balance, excluding the allowance.", 2_000)
    ]
    total_available: Annotated[
        Cents, doc("Cents available: allowance plus top-up, minus holds.", 3_188)
    ]
    total_loaded_cents: Annotated[
        Cents,
        doc(
            "Cents paid in since the account was created, minus refunds and disputes. Allowances "
            "and grants are not included.",
            2_000,
        ),
    ]
    total_spent_cents: Annotated[Cents, doc("Cents spent since the account was created.", 312)]
    has_allowance: Annotated[bool, doc("Whether the account has a monthly allowance.", True)]
    allow_overflow: AllowOverflow
    usage_bar: Annotated[UsageBar, doc("How much of this month's allowance is used.")]
    balance: Annotated[BalanceAmounts, doc("The same balance in dollars and cents.")]
    owed_cents: Annotated[
        int,
        Field(
            exclude_if=lambda cents: cents == 0,
            description="Cents that the account owes: for calls that ended after their hold, "
            "and for refunds and disputes of spent money. Absent when it owes nothing.",
            examples=[3],
        ),
    ] = 0

    @classmethod
    def of(cls, balance: Balance) -> "BalanceResponse":
        available = available_cents(balance.allowance + balance.topup)
        loaded = available_cents(-balance.outside)
        spent = spent_cents(balance.spent)
        return cls(
            top_up_cents=available_cents(balance.topup + balance.held_topup),
            total_available=available,
            total_loaded_cents=loaded,
            total_spent_cents=spent,
            has_allowance=balance.allowance_total > 0,
            allow_overflow=balance.allow_overflow,
            usage_bar=UsageBar.of(balance),
            balance=BalanceAmounts(
                available_usd=usd(available),
                total_loaded_usd=usd(loaded),
                total_spent_usd=usd(spent),
                available_cents=available,
                reserved_cents=spent_cents(balance.held_allowance + balance.held_topup),
            ),
            owed_cents=spent_cents(-balance.owed),
        )


class UsageTotals(Wire):
    """Model calls and what they cost."""

    calls: Annotated[Count, doc("Model calls.", 2)]
    input_tokens: Annotated[Count, doc("Tokens sent to models.", 1_840)]
    output_tokens: Annotated[Count, doc("Tokens received from models.", 412)]
    cost_usd: ExactUsd

    @classmethod
    def of(cls, usage: list[queries.Usage]) -> "UsageTotals":
        return cls(
            calls=sum(each.calls for each in usage),
            input_tokens=sum(each.input_tokens for each in usage),
            output_tokens=sum(each.output_tokens for each in usage),
            cost_usd=exact_usd(sum(each.spent for each in usage)),
        )


class Usage(UsageTotals):
    """Usage of one day, agent or model."""

    key: Annotated[
        str, doc("The day, the name of the agent or the name of the model.", "2026-11-02")
    ]
    group: Annotated[
        str | None,
        doc(
            "The agent or the model, if `groupBy` is `day,agent` or `day,model`. Null for the "
            "sum of all except the ten most expensive, and if `groupBy` names one thing.",
            None,
            examples.AGENT,
        ),
    ]

    @classmethod
    def of_one(cls, usage: queries.Usage) -> "Usage":
        totals = UsageTotals.of([usage]).model_dump()
        return cls(key=usage.key, group=usage.group, **totals)


class UsageResponse(Wire):
    """Usage of a span of days."""

    usage: Annotated[
        list[Usage], doc("One entry for each group. Days in order; others most expensive first.")
    ]
    from_: Annotated[
        Day, Field(alias="from", description="The first day, in UTC.", examples=["2026-11-01"])
    ]
    to: Annotated[Day, doc("The last day, in UTC.", "2026-11-30")]
    group_by: Annotated[GroupBy, doc("What the entries are grouped by.")]
    totals: Annotated[UsageTotals, doc("The sum of all entries.")]


class Forecast(Wire):
    """How long the money lasts if the account keeps spending at the rate of the last days."""

    window_days: Annotated[
        int, doc("The number of days that the forecast is based on. Today is the last one.", 7)
    ]
    spent_usd: Annotated[ExactUsd, doc("US dollars spent in these days.", "2.100000")]
    per_day_usd: Annotated[ExactUsd, doc("US dollars spent per day.", "0.300000")]
    allowance_lasts_until: Annotated[
        Timestamp | None,
        doc(
            "When this month's allowance is used up. Null if it lasts until the next one starts, "
            "if there is none, or if nothing was spent.",
            "2026-11-28T06:00:00.000Z",
        ),
    ]
    balance_lasts_until: Annotated[
        Timestamp | None,
        doc(
            "When all money that runs can use is used up, including holds, without new allowances "
            "and payments. Null if that takes more than ten years, or if nothing was spent.",
            "2027-01-31T12:00:00.000Z",
        ),
    ]

    @classmethod
    def of(cls, forecast: forecasts.Forecast) -> "Forecast":
        return cls(
            window_days=forecasts.WINDOW_DAYS,
            spent_usd=exact_usd(forecast.spent_micros),
            per_day_usd=exact_usd(forecast.spent_micros // forecasts.WINDOW_DAYS),
            allowance_lasts_until=forecast.allowance_lasts_until,
            balance_lasts_until=forecast.balance_lasts_until,
        )


class ForecastResponse(Wire):
    """A forecast."""

    forecast: Annotated[Forecast, doc("The forecast.")]
