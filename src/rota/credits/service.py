"""Balances, usage, top-ups and payments."""

from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Protocol
from uuid import UUID

import structlog

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.credits import alerts, ledger, metrics, queries
from rota.credits.allowance import AllowanceOf, refresh
from rota.credits.forecasts import WINDOW_DAYS, Forecast, forecast
from rota.credits.money import available_cents, of_cents
from rota.credits.payers import Payers
from rota.credits.queries import Balance, GroupBy, Movement, MovementFilter, Usage
from rota.credits.schemas import PatchCreditSettings, TopUp, TopUpResponse
from rota.events import journal
from rota.payments import customers
from rota.payments.intents import intent
from rota.payments.port import Checkout, Payer, Payment, PaymentState, Processor
from rota.payments.turns import PaymentTurns
from rota.platform import clock, ids
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.idempotency import Idempotency, Outcome

OPERATION = "POST /api/credits/topup"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PaymentChange:
    """How a report about a payment changed the ledger, in cents. Negative: money came back."""

    paid: int = 0
    refunded: int = 0
    disputed: int = 0


class TaskLabel(Protocol):
    """What a list of money shows about a task."""

    @property
    def name(self) -> str: ...
    @property
    def agent(self) -> str | None: ...


class TaskLabels(Protocol):
    """Returns the labels of those of the tasks that exist."""

    async def __call__(
        self, tx: AccountReader, task_ids: Collection[UUID]
    ) -> Mapping[UUID, TaskLabel]: ...


class Credits:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        processor: Processor,
        payers: Payers,
        turns: PaymentTurns,
        allowance_of: AllowanceOf,
        task_labels: TaskLabels,
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._processor = processor
        self._payers = payers
        self._turns = turns
        self._allowance_of = allowance_of
        self._task_labels = task_labels

    async def balance(self, caller: Caller) -> Balance:
        """The current balance. Starts a new month first if one is due."""
        account_id, now = caller.account_id, clock.now()
        async with self._db.snapshot(account_id) as tx:
            if not await queries.is_stale(tx, now):
                return await queries.balance(tx)
        async with self._db.write(account_id) as tx:
            # A lock on the account comes before a lock on its balance.
            await journal.lock_account(tx)
            await refresh(tx, self._allowance_of, now)
            return await queries.balance(tx)

    async def forecast(self, caller: Caller) -> Forecast:
        balance, now = await self.balance(caller), clock.now()
        first = now.date() - timedelta(WINDOW_DAYS - 1)
        async with self._db.read(caller.account_id) as tx:
            days = await queries.usage(tx, first, now.date(), "day")
        return forecast(balance, sum(day.spent for day in days), now)

    async def settings(self, caller: Caller) -> Balance:
        async with self._db.read(caller.account_id) as tx:
            return await queries.balance(tx)

    async def change_settings(self, caller: Caller, body: PatchCreditSettings) -> Balance:
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            if body.allow_overflow is not None:
                await queries.set_overflow(tx, body.allow_overflow)
            if "alert_below_cents" in body.model_fields_set:
                cents = body.alert_below_cents
                await alerts.set_amount(tx, None if cents is None else of_cents(cents))
            changed = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
            tx.record("credits.settings_updated", changed)
            return await queries.balance(tx)

    async def top_up(self, caller: Caller, body: TopUp, idempotency_key: str | None) -> Outcome:
        """Creates a checkout. No transaction is open while the processor is called."""
        account_id, request = caller.account_id, (OPERATION, body)
        async with self._db.read(account_id, caller.user_id) as tx:
            stored = await self._idempotency.stored(tx, idempotency_key, request)
            if stored is not None:
                return stored

        def create(payer: Payer) -> Awaitable[Checkout]:
            key = intent(idempotency_key, OPERATION, caller.user_id, payer, body)
            return self._processor.top_up_checkout(payer, body.amount_cents, key)

        checkout = await self._payers.checkout(caller, create)

        async def response() -> TopUpResponse:
            writing.record("credits.checkout_created", {"amountCents": body.amount_cents})
            return TopUpResponse(checkout_url=checkout.url, amount=body.amount_cents)

        async with self._db.write(account_id, caller.user_id, right=caller.right) as writing:
            return await self._idempotency.once(writing, idempotency_key, request, 200, response)

    async def take_payment(self, payment: Payment) -> None:
        """Records a payment. It counts once, no matter how often the processor reports it."""
        async with self._db.write(payment.account_id) as tx:
            change = await _record(tx, payment)
        _count(change)

    async def sync_payment(self, payment_id: str) -> None:
        """Reads the current state of a payment from the processor and applies it."""
        # Only the processor knows which account's turn it is.
        found = await self._processor.payment(payment_id)
        if found is None:
            return
        async with self._turns.of(found.payment.account_id) as tx:
            state = await self._processor.payment(payment_id)
            if state is None:
                return
            change = await _record(tx, state.payment, state)
        _count(change)

    async def movements(
        self, caller: Caller, filters: MovementFilter, limit: int, offset: int
    ) -> tuple[list[Movement], int]:
        async with self._db.snapshot(caller.account_id) as tx:
            if filters == MovementFilter():
                found, total = await queries.movements(tx, limit, offset)
            else:
                found, total = await queries.filtered_movements(tx, filters, limit, offset)
            if caller.has_scope("tasks:read"):
                found = await self._with_tasks(tx, found)
        return found, total

    async def _with_tasks(self, tx: AccountReader, movements: list[Movement]) -> list[Movement]:
        """Adds the name and the agent of each movement's task."""
        task_ids = {each.task_id for each in movements if each.task_id is not None}
        tasks = await self._task_labels(tx, task_ids)
        return [
            replace(each, task_name=task.name, agent=task.agent)
            if each.task_id is not None and (task := tasks.get(each.task_id))
            else each
            for each in movements
        ]

    async def usage(
        self, caller: Caller, first: date, last: date, group_by: GroupBy
    ) -> list[Usage]:
        """Usage from the first to the last day. By day, days without usage are included."""
        async with self._db.read(caller.account_id) as tx:
            found = await queries.usage(tx, first, last, group_by)
        if group_by != "day":
            return found
        used = {each.key: each for each in found}
        days = [str(first + timedelta(n)) for n in range((last - first).days + 1)]
        return [used.get(day) or Usage(day, 0, 0, 0, 0) for day in days]


async def _record(
    tx: AccountTransaction, payment: Payment, state: PaymentState | None = None
) -> PaymentChange:
    """Adds what the ledger lacks. With the payment's state, also its refunds and disputes."""
    account = ids.to_wire("acct", tx.account_id)
    if not await journal.lock_account(tx):
        log.error("payment_unknown_account", payment_id=payment.id, account_id=account)
        return PaymentChange()
    new = await ledger.top_up(tx, of_cents(payment.amount_cents), payment.id)
    change = PaymentChange(paid=payment.amount_cents if new else 0)
    if new and not await accounts.is_open(tx):
        # It was paid after the erasure. The operator has to refund it.
        log.error("payment_of_erased_account", payment_id=payment.id, account_id=account)
    if state is not None:
        refunded = await ledger.set_returned(
            tx, "refund", of_cents(state.refunded_cents), payment.id
        )
        disputed = await ledger.set_returned(
            tx, "dispute", of_cents(state.disputed_cents), payment.id
        )
        change = replace(
            change, refunded=available_cents(refunded), disputed=available_cents(disputed)
        )
    # A subscription's customer takes precedence: its credit pays for the next plan.
    if payment.customer_id and await customers.find(tx) is None:
        await customers.remember(tx, payment.customer_id)
    if change != PaymentChange():
        amount_cents = change.paid - change.refunded - change.disputed
        data = {"amountCents": amount_cents, "reference": payment.id}
        await journal.append(tx, "credits.topped_up", data)
        await alerts.report(tx)
    if change.disputed > 0:
        log.warning(
            "payment_disputed",
            payment_id=payment.id,
            account_id=account,
            amount_cents=change.disputed,
        )
    return change


def _count(change: PaymentChange) -> None:
    metrics.TOPPED_UP_CENTS.inc(change.paid)
    metrics.REFUNDED_CENTS.inc(max(change.refunded, 0))
    metrics.REFUNDS_REVERSED_CENTS.inc(max(-change.refunded, 0))
    metrics.DISPUTED_CENTS.inc(max(change.disputed, 0))
    metrics.DISPUTES_REVERSED_CENTS.inc(max(-change.disputed, 0))
