"""Accounts with money, a payment processor that tests control, and runs that spend."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from rota.credits import charges, holds, ledger
from rota.credits.model import Charge, RunId
from rota.credits.service import Credits
from rota.payments.port import Checkout, NoProcessor, Payer, Payment, PaymentFailed, PaymentState
from rota.plans.allowance import plan_allowance
from rota.platform import ids
from rota.platform.db import AccountTransaction, Database
from rota.tasks import queries as tasks
from rota.variants import VARIANTS
from tests.load.statements import external_task
from tests.service import Person, Service

CENT = 10_000
# The variant's own allowances. Most other tests override them with more than they can spend.
ALLOWANCE_OF = plan_allowance(VARIANTS["a"].tier_allowance({}), "basic", timedelta(days=7))


class FakeProcessor(NoProcessor):
    """Creates one session for each key, like a real processor. Tests can take it down.

    `states` has what it knows about payments.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, Checkout] = {}
        self.requests: list[tuple[Payer, int, str]] = []
        self.emails: dict[str, str | None] = {}
        self.states: dict[str, PaymentState] = {}
        self.down = False

    async def create_customer(self, account_id: UUID, email: str | None, key: str) -> str:
        customer_id = f"cus_{account_id.hex}"
        self.emails[customer_id] = email
        return customer_id

    async def payment(self, payment_id: str) -> PaymentState | None:
        return self.states.get(payment_id)

    async def top_up_checkout(self, payer: Payer, amount_cents: int, key: str) -> Checkout:
        self.requests.append((payer, amount_cents, key))
        number = len(self.sessions) + 1
        session = self.sessions.setdefault(
            key, Checkout(f"cs_{number}", f"https://pay.example/cs_{number}")
        )
        if self.down:
            raise PaymentFailed("The payment processor did not respond. Try again later.")
        return session


@dataclass
class Shop:
    service: Service
    db: Database
    credits: Credits
    processor: FakeProcessor
    # Accounts whose events were announced.
    announced: list[UUID] = field(default_factory=list)

    async def report(
        self, paid: Payment, *, refunded_cents: int = 0, disputed_cents: int = 0
    ) -> None:
        """The processor reports that the payment has changed."""
        self.processor.states[paid.id] = PaymentState(paid, refunded_cents, disputed_cents)
        await self.credits.sync_payment(paid.id)

    async def balance(self, person: Person, **headers: str) -> dict[str, Any]:
        response = await person.get("/api/credits/balance", headers=headers)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found


async def new_account(db: Database, tier: str = "basic", topup_cents: int = 0) -> UUID:
    account_id = ids.new_uuid()
    async with db.write(account_id) as tx:
        await tx.execute(
            "INSERT INTO accounts (id, kind, name, tier) VALUES ($1, 'personal', 'Test', $2)",
            account_id,
            tier,
        )
        if topup_cents:
            await ledger.top_up(tx, topup_cents * CENT, "pi_first")
    return account_id


def payment(account_id: UUID, reference: str, amount_cents: int) -> Payment:
    return Payment(reference, account_id, "cus_1", amount_cents)


async def start_run(tx: AccountTransaction, budget_micros: int) -> RunId:
    """Creates a hosted task with its hold."""
    task = replace(external_task(ids.new_uuid()), hosted=True)
    await tasks.insert(tx, task, {}, None, created_by=tx.account_id)
    run_id = RunId(task.id, task.run)
    assert await holds.hold(tx, run_id, budget_micros, ALLOWANCE_OF)
    return run_id


async def spend(
    tx: AccountTransaction,
    run_id: RunId,
    step: int,
    cost_micros: int,
    *,
    agent: str = "bug-triager",
    model: str = "small-model",
) -> None:
    """Records a model call: its step and its charge."""
    await tx.execute(
        """
        INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name,
            input_tokens, output_tokens, cost_micros, price_version)
        VALUES ($1, $2, $3, $4, 0, 'model', 'finished', $5, 100, 20, $6, 'test')
        """,
        tx.account_id,
        run_id.task_id,
        run_id.run,
        step,
        model,
        cost_micros,
    )
    await charges.charge(tx, Charge(run_id, step, agent, model, "test", cost_micros, 100, 20))


async def end_run(tx: AccountTransaction, run_id: RunId) -> None:
    await tx.execute(
        "UPDATE tasks SET status = 'COMPLETED' WHERE account_id = $1 AND id = $2",
        tx.account_id,
        run_id.task_id,
    )
    await holds.release(tx, run_id)
