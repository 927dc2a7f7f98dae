"""Accounts with money, a payment processor that does as it is told, and runs that spend."""

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from rota.credits import charges, holds, ledger
from rota.credits.ledger import Charge, RunId
from rota.credits.service import Credits
from rota.payments.port import (
    Checkout,
    NoProcessor,
    Payer,
    Payment,
    PaymentFailed,
)
from rota.platform import ids
from rota.platform.db import AccountTransaction, Database
from rota.tasks import queries as tasks
from rota.variants import VARIANTS
from tests.load.statements import external_task
from tests.service import Person, Service

CENT = 10_000
# The variant's own figures, where most tests have more money than they can spend.
ALLOWANCE_OF = VARIANTS["a"].allowance_of({})


class FakeProcessor(NoProcessor):
    """One session for each key, as a processor has it; down whenever a test says so."""

    def __init__(self) -> None:
        self.sessions: dict[str, Checkout] = {}
        self.asked: list[tuple[Payer, int, str]] = []
        self.down = False

    async def top_up_checkout(self, payer: Payer, amount_cents: int, key: str) -> Checkout:
        self.asked.append((payer, amount_cents, key))
        number = len(self.sessions) + 1
        session = self.sessions.setdefault(
            key, Checkout(f"cs_{number}", f"https://pay.example/cs_{number}")
        )
        if self.down:
            raise PaymentFailed("The payment processor does not answer. Try again later.")
        return session


@dataclass
class Shop:
    service: Service
    db: Database
    credits: Credits
    processor: FakeProcessor
    # Accounts whose followers were woken up.
    announced: list[UUID] = field(default_factory=list)

    async def balance(self, person: Person, **headers: str) -> dict[str, Any]:
        answer = await person.get("/api/credits/balance", headers=headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


async def new_account(db: Database, tier: str = "basic", cents: int = 0) -> UUID:
    account_id = ids.new_uuid()
    async with db.write(account_id) as tx:
        await tx.execute(
            "INSERT INTO accounts (id, kind, name, tier) VALUES ($1, 'personal', 'Test', $2)",
            account_id,
            tier,
        )
        if cents:
            await ledger.top_up(tx, cents * CENT, "pi_first")
    return account_id


def payment(account_id: UUID, reference: str, cents: int, refunded_cents: int = 0) -> Payment:
    return Payment(reference, account_id, "cus_1", cents, refunded_cents)


async def start_run(tx: AccountTransaction, micros: int, task_id: UUID | None = None) -> RunId:
    """A hosted task with its hold, as handing it over makes it."""
    task = replace(external_task(task_id or ids.new_uuid()), hosted=True)
    await tasks.insert(tx, tx.account_id, task, {}, None)
    owner = RunId(task.id, task.run)
    assert await holds.hold(tx, owner, micros, ALLOWANCE_OF)
    return owner


async def spend(
    tx: AccountTransaction,
    owner: RunId,
    step: int,
    cost: int,
    *,
    agent: str = "bug-triager",
    model: str = "small-model",
) -> None:
    """A model call: its step, and what it costs."""
    await tx.execute(
        """
        INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name,
            input_tokens, output_tokens, cost_micros, price_version)
        VALUES ($1, $2, $3, $4, 0, 'model', 'finished', $5, 100, 20, $6, 'test')
        """,
        tx.account_id,
        owner.task_id,
        owner.run,
        step,
        model,
        cost,
    )
    call = Charge(owner, step, agent, model, "test", cost, 100, 20)
    await charges.charge(tx, call)


async def end_run(tx: AccountTransaction, owner: RunId) -> None:
    await tx.execute(
        "UPDATE tasks SET status = 'COMPLETED' WHERE account_id = $1 AND id = $2",
        tx.account_id,
        owner.task_id,
    )
    await holds.release(tx, owner)
