"""What the ledger records: kinds of movements, runs, charges and entries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

Kind = Literal[
    "allowance",
    "top_up",
    "hold",
    "charge",
    "release",
    "expiry",
    "refund",
    "refund_reversal",
    "dispute",
    "dispute_reversal",
    "grant",
]
# Why paid money leaves the account again, and the kind of entry that reverses it.
Return = Literal["refund", "dispute"]
REVERSALS: Mapping[Return, Kind] = {"refund": "refund_reversal", "dispute": "dispute_reversal"}


@dataclass(frozen=True, slots=True)
class RunId:
    """One run of a task. Holds and charges belong to runs."""

    task_id: UUID
    run: int

    def __str__(self) -> str:
        return f"{self.task_id.hex}/{self.run}"


def release_key(run_id: RunId) -> str:
    """The key of the entry with which a run releases its hold."""
    return f"release/{run_id}"


@dataclass(frozen=True, slots=True)
class Charge:
    """A model call and its cost."""

    run_id: RunId
    step: int
    agent: str
    model: str
    price_version: str
    cost_micros: int
    input_tokens: int
    output_tokens: int
    # Whether Rota counted the tokens, because the provider did not report them.
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A ledger entry: the change of each book, in micro-dollars."""

    kind: Kind
    key: str
    allowance: int = 0
    topup: int = 0
    spent: int = 0
    owed: int = 0
    granted: int = 0
    outside: int = 0
    reference: str | None = None
    charge: Charge | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LockedBalance:
    """A balance that only this transaction can change, in micro-dollars."""

    allowance: int
    usable_topup: int
    topup: int
    # Negative while the account owes money.
    owed: int
