"""Public schemas of credits. Available cents round down; spent cents round up."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from rota.credits import queries
from rota.credits.ledger import Kind
from rota.credits.money import available_cents, exact_usd, spent_cents, usd
from rota.credits.queries import Balance, Movement
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Body, Count, Timestamp, Total, Wire, doc, example_of

MIN_TOP_UP_CENTS = 500
MAX_TOP_UP_CENTS = 100_000
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
TransactionKind = TypeAliasType(
    "TransactionKind",
    Annotated[
        Kind,
        doc(
            "`allowance`: the monthly allowance. `top_up`: a payment. `hold`: money set aside for "
            "a run. `charge`: a model call. `release`: the returned rest of a hold. `expiry`: "
            "unused allowance of a past month. `refund`: a payment that was returned. "
            "`refund_reversal`: a refund that failed. `dispute`: a payment that the bank took "
            "back. `dispute_reversal`: disputed money that came back.",
            "charge",
        ),
    ],
)
AllowanceStatus = TypeAliasType(
    "AllowanceStatus",
    Annotated[
        Literal["normal", "warning", "depleted"],
        doc("`warning` from 80 percent, `depleted` at 100 percent.", "normal"),
    ],
)
GroupBy = TypeAliasType(
    "GroupBy", Annotated[queries.GroupBy, doc("What usage is grouped by.", "day")]
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


class PatchCreditSettings(Body):
    """New credit settings."""

    allow_overflow: AllowOverflow


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
        doc("When the next allowance starts. Null without an allowance.", examples.PERIOD_END),
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
            resets_at=balance.period_ends_at if total else None,
        )


def _status(percent: int) -> AllowanceStatus:
    if percent >= 100:
        return "depleted"
    return "warning" if percent >= WARNING_PERCENT else "normal"


class BalanceAmounts(Wire):
    """The balance in US dollars and cents."""

    available_usd: Annotated[Usd, doc("US dollars available, as a string.", "31.88")]
    total_loaded_usd: Annotated[
        Usd, doc("US dollars paid in since the account was created, as a string.", "20.00")
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
        Cents, doc("Cents paid in since the account was created, excluding allowances.", 2_000)
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


class Changes(Wire):
    """How a transaction changed each part of the balance, in micro-dollars."""

    allowance: Annotated[Micros, doc("Change of the allowance.", 0)]
    top_up: Annotated[Micros, doc("Change of the top-up balance.", 0)]
    held: Annotated[Micros, doc("Change of the money on hold.", -11_700)]
    spent: Annotated[Micros, doc("Change of the money spent.", 11_700)]
    owed: Annotated[Micros, doc("Change of the money owed. Negative: more is owed.", 0)]


class Transaction(Wire):
    """A movement of money. Transactions never change."""

    id: Annotated[str, doc("The ID of the transaction, `txn_…`.", examples.TRANSACTION_ID)]
    kind: Annotated[TransactionKind, doc("What kind of movement it is.")]
    created_at: Annotated[Timestamp, doc("When it happened.", examples.CHARGED)]
    amount_micros: Annotated[
        Micros,
        doc(
            "The amount in micro-dollars (one cent is 10,000). Negative when money was held, "
            "spent, expired, refunded or disputed."
        ),
    ]
    amount_cents: Annotated[Cents, doc("The same amount in cents, rounded down.", -2)]
    changes: Annotated[Changes, doc("How it changed each part of the balance.")]
    task_id: Annotated[
        str | None,
        doc("The task. Null unless a run held or spent the money.", examples.TASK_ID),
    ]
    run: Annotated[int | None, doc("The run of the task. Null without a task.", 1)]
    step: Annotated[int | None, doc("The step of the run. Null except for a charge.", 1)]
    model: Annotated[
        str | None, doc("The model that was called. Null except for a charge.", examples.MODEL)
    ]
    price_version: Annotated[
        str | None,
        doc("The price list that was used. Null except for a charge.", "genai-prices/0.2.8"),
    ]
    estimated: Annotated[
        bool,
        doc("Whether Rota counted the tokens of a charge, as the provider did not.", False),
    ]
    reference: Annotated[
        str | None,
        doc(
            "The payment processor's ID. Null except for payments, refunds and disputes.",
            None,
            "pi_3QabcDEF",
        ),
    ]
    description: Annotated[
        str, doc("What happened, as readable text.", f"Call to {examples.MODEL}")
    ]

    @classmethod
    def of(cls, movement: Movement) -> "Transaction":
        amount = _amount(movement)
        return cls(
            id=ids.to_wire("txn", movement.id),
            kind=movement.kind,
            created_at=movement.at,
            amount_micros=amount,
            amount_cents=available_cents(amount),
            changes=Changes(
                allowance=movement.allowance,
                top_up=movement.topup,
                held=movement.held,
                spent=movement.spent,
                owed=movement.owed,
            ),
            task_id=ids.to_wire("task", movement.task_id) if movement.task_id else None,
            run=movement.run,
            step=movement.step,
            model=movement.model,
            price_version=movement.price_version,
            estimated=movement.estimated,
            reference=movement.reference,
            description=_description(movement),
        )


def _amount(movement: Movement) -> int:
    return {
        "allowance": -movement.granted,
        "expiry": -movement.granted,
        "hold": -movement.held,
        "release": -movement.held,
        "charge": -movement.spent,
        # Every other kind is a payment, or a part of one that left or came back.
    }.get(movement.kind, -movement.outside)


def _description(movement: Movement) -> str:
    if movement.kind == "charge":
        bounded = movement.cost is not None and movement.cost > movement.spent
        return f"Call to {movement.model}" + (", up to the hold" if bounded else "")
    return {
        "allowance": "Monthly allowance",
        "expiry": "Unused allowance of a past month",
        "top_up": "Payment",
        "refund": "Refund of a payment",
        "refund_reversal": "Refund that failed",
        "dispute": "Payment disputed at the bank",
        "dispute_reversal": "Disputed payment returned",
        "hold": "Held for a run",
        "release": "Released by a run",
    }[movement.kind]


class TransactionsResponse(Wire):
    """A page of transactions."""

    transactions: Annotated[list[Transaction], doc("The transactions on this page, newest first.")]
    total: Total


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

    @classmethod
    def of_one(cls, usage: queries.Usage) -> "Usage":
        return cls(key=usage.key, **UsageTotals.of([usage]).model_dump())


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
