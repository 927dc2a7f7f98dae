"""Wire shapes of credits. Cents that are available round down, cents that are spent up."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from rota.credits import queries
from rota.credits.money import available_cents, exact_usd, spent_cents, usd
from rota.credits.queries import Balance, GroupBy, Movement
from rota.platform import ids
from rota.platform.http.schemas import Body, Timestamp, Wire

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


Usd = Annotated[str, Field(examples=["12.34"])]
ExactUsd = Annotated[str, Field(examples=["0.012345"])]
Kind = Literal["allowance", "top_up", "hold", "charge", "release", "expiry", "refund"]


class TopUp(Body):
    amount_cents: Annotated[int, Field(ge=MIN_TOP_UP_CENTS, le=MAX_TOP_UP_CENTS, examples=[2_000])]


class PatchCreditSettings(Body):
    allow_overflow: bool


class TopUpResponse(Wire):
    checkout_url: Annotated[str, Field(examples=["https://checkout.stripe.com/c/pay/cs_1"])]
    amount: int


class CreditSettings(Wire):
    allow_overflow: bool


class SettingsResponse(Wire):
    settings: CreditSettings


class UsageBar(Wire):
    """This month's allowance."""

    used: int
    total: int
    remaining: int
    percent: int
    status: Literal["normal", "warning", "depleted"]
    resets_at: Timestamp | None

    @classmethod
    def of(cls, balance: Balance) -> "UsageBar":
        total = available_cents(balance.allowance_total)
        used = min(spent_cents(balance.allowance_used), total)
        # Of the exact amounts, so that neither threshold is seen before it is reached.
        percent = 100 * balance.allowance_used // max(balance.allowance_total, 1)
        return cls(
            used=used,
            total=total,
            remaining=total - used,
            percent=percent,
            status=_status(percent),
            resets_at=balance.period_ends_at if total else None,
        )


def _status(percent: int) -> Literal["normal", "warning", "depleted"]:
    if percent >= 100:
        return "depleted"
    return "warning" if percent >= WARNING_PERCENT else "normal"


class BalanceAmounts(Wire):
    available_usd: Usd
    total_loaded_usd: Usd
    total_spent_usd: Usd
    available_cents: int
    reserved_cents: int


class BalanceResponse(Wire):
    top_up_cents: int
    total_available: int
    total_loaded_cents: int
    total_spent_cents: int
    has_allowance: bool
    allow_overflow: bool
    usage_bar: UsageBar
    balance: BalanceAmounts
    # Only where there is something to pay.
    owed_cents: Annotated[int, Field(exclude_if=lambda cents: cents == 0)] = 0

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
    """What the movement did to each book of the account, in micro-dollars."""

    allowance: int
    top_up: int
    held: int
    spent: int
    owed: int


class Transaction(Wire):
    id: str
    kind: Kind
    created_at: Timestamp
    # Below zero for what is reserved, spent, expired or refunded.
    amount_micros: int
    amount_cents: int
    changes: Changes
    task_id: str | None
    run: int | None
    step: int | None
    model: str | None
    price_version: str | None
    reference: str | None
    description: str

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
            reference=movement.reference,
            description=_description(movement),
        )


def _amount(movement: Movement) -> int:
    return {
        "allowance": -movement.granted,
        "expiry": -movement.granted,
        "top_up": -movement.outside,
        "refund": -movement.outside,
        "hold": -movement.held,
        "release": -movement.held,
        "charge": -movement.spent,
    }[movement.kind]


def _description(movement: Movement) -> str:
    if movement.kind == "charge":
        bounded = movement.cost is not None and movement.cost > movement.spent
        return f"Call of {movement.model}" + (", as far as the hold went" if bounded else "")
    return {
        "allowance": "Monthly allowance",
        "expiry": "Unused allowance of a month that is over",
        "top_up": "Payment",
        "refund": "Refund of a payment",
        "hold": "Reserved for a run",
        "release": "Given back by a run",
    }[movement.kind]


class TransactionsResponse(Wire):
    transactions: list[Transaction]
    total: int


class UsageTotals(Wire):
    calls: int
    input_tokens: int
    output_tokens: int
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
    # A day, an agent's name or a model's.
    key: str

    @classmethod
    def of_one(cls, usage: queries.Usage) -> "Usage":
        return cls(key=usage.key, **UsageTotals.of([usage]).model_dump())


class UsageResponse(Wire):
    usage: list[Usage]
    from_: Annotated[Day, Field(alias="from")]
    to: Day
    group_by: GroupBy
    totals: UsageTotals
