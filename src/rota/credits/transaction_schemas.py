"""Public schemas of transactions: the ledger's entries."""

from typing import Annotated

from typing_extensions import TypeAliasType

from rota.credits.model import Kind
from rota.credits.money import available_cents
from rota.credits.queries import Movement
from rota.credits.schemas import Cents, Micros
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Timestamp, Total, Wire, doc

TransactionKind = TypeAliasType(
    "TransactionKind",
    Annotated[
        Kind,
        doc(
            "`allowance`: the monthly allowance. `top_up`: a payment. `hold`: money set aside for "
            "a run. `charge`: a model call. `release`: the returned rest of a hold. `expiry`: "
            "unused allowance of a past month. `refund`: a payment that was returned. "
            "`refund_reversal`: a refund that failed. `dispute`: a payment that the bank took "
            "back. `dispute_reversal`: disputed money that came back. `grant`: money that the "
            "operator gave.",
            "charge",
        ),
    ],
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
    available_after_micros: Annotated[
        Micros,
        doc(
            "What was available right after it, in micro-dollars: allowance plus top-up, minus "
            "holds.",
            31_880_000,
        ),
    ]
    available_after_cents: Annotated[Cents, doc("The same in cents, rounded down.", 3_188)]
    task_id: Annotated[
        str | None,
        doc("The task. Null unless a run held or spent the money.", examples.TASK_ID),
    ]
    task_name: Annotated[
        str | None,
        doc(
            "The name of the task. Null without a task, or if the API key lacks the scope "
            "`tasks:read`.",
            "Write the onboarding checklist",
        ),
    ]
    agent: Annotated[
        str | None, doc("The agent of the task. Null if `taskName` is null.", examples.AGENT)
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
        doc(
            "Whether Rota counted the tokens of a charge, because the provider did not report "
            "them.",
            False,
        ),
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
            available_after_micros=movement.available_after,
            available_after_cents=available_cents(movement.available_after),
            task_id=ids.to_wire("task", movement.task_id) if movement.task_id else None,
            task_name=movement.task_name,
            agent=movement.agent,
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
        "grant": -movement.granted,
        "hold": -movement.held,
        "release": -movement.held,
        "charge": -movement.spent,
        # Every other kind is a payment, or a part of one that left or came back.
    }.get(movement.kind, -movement.outside)


def _description(movement: Movement) -> str:
    if movement.kind == "charge":
        bounded = movement.cost is not None and movement.cost > movement.spent
        return f"Call to {movement.model}" + (
            ", charged up to the amount on hold" if bounded else ""
        )
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
        "grant": "Granted by the operator",
    }[movement.kind]


class TransactionsResponse(Wire):
    """A page of transactions."""

    transactions: Annotated[list[Transaction], doc("The transactions on this page, newest first.")]
    total: Total
