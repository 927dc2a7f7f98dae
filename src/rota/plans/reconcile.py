"""Compares the payment processor's records with ours, in both directions, and repairs ours."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from rota.credits import queries as credits_queries
from rota.credits.money import available_cents, of_cents
from rota.credits.queries import RecordedPayment
from rota.payments.port import PaymentState, Processor, Subscription
from rota.plans import queries
from rota.plans.queries import Row
from rota.plans.service import product_of
from rota.plans.states import Position, next_state
from rota.platform import clock
from rota.platform.db import Database

# A payment can be recorded days after it started, so earlier payments are compared too.
MARGIN = timedelta(days=7)
# A refund can fail weeks after it was made, and a dispute can take months.
CHANGES_MARGIN = timedelta(days=180)


@dataclass(frozen=True, slots=True)
class Difference:
    account_id: UUID
    # The processor's ID of the payment or the subscription.
    id: str
    kind: str
    theirs: str
    ours: str
    # Removes the difference. None if a person has to check it.
    repair: Callable[[], Awaitable[None]] | None = None


class Reconciliation:
    def __init__(
        self,
        db: Database,
        processor: Processor,
        sync_payment: Callable[[str], Awaitable[None]],
        sync: Callable[[str, UUID], Awaitable[None]],
        *,
        position: Position,
        grace: timedelta,
    ) -> None:
        self._db = db
        self._processor = processor
        self._sync_payment = sync_payment
        self._sync = sync
        self._position = position
        self._grace = grace

    async def differences(self, since: datetime) -> AsyncIterator[Difference]:
        """Differences in payments, refunds and disputes since then, and in live subscriptions."""
        async for difference in self._payment_differences(since):
            yield difference
        async for difference in self._subscription_differences():
            yield difference

    async def _payment_differences(self, since: datetime) -> AsyncIterator[Difference]:
        theirs: dict[UUID, list[PaymentState]] = {}
        async for state in self._processor.payments(
            since - MARGIN, changed_since=since - CHANGES_MARGIN
        ):
            theirs.setdefault(state.payment.account_id, []).append(state)
        async with self._db.relay() as connection:
            accounts = {*theirs, *await credits_queries.accounts_with_entries(connection)}
        for account_id in sorted(accounts):
            async with self._db.read(account_id) as tx:
                recorded = await credits_queries.recorded_payments(tx)
            for state in theirs.get(account_id, ()):
                ours = recorded.pop(state.payment.id, RecordedPayment())
                if found := self._payment_difference(state, ours):
                    yield found
            for payment_id, ours in recorded.items():
                if ours.at is None or ours.at < since:
                    continue
                reported = await self._processor.payment(payment_id)
                if reported is None or reported.payment.account_id != account_id:
                    amount = _dollars(ours.paid_micros)
                    yield Difference(account_id, payment_id, "top-up", "nothing", amount)
                elif found := self._payment_difference(reported, ours):
                    yield found

    def _payment_difference(self, state: PaymentState, ours: RecordedPayment) -> Difference | None:
        payment, paid_micros = state.payment, of_cents(state.payment.amount_cents)
        compared = (
            ("top-up", paid_micros, ours.paid_micros),
            ("refund", of_cents(state.refunded_cents), ours.refunded_micros),
            ("dispute", of_cents(state.disputed_cents), ours.disputed_micros),
        )
        different = [each for each in compared if each[1] != each[2]]
        if not different:
            return None
        kind, theirs_micros, ours_micros = different[0]
        # A payment is never recorded twice, so a wrong amount stays.
        repairable = ours.paid_micros in (0, paid_micros)
        return Difference(
            payment.account_id,
            payment.id,
            kind,
            _dollars(theirs_micros),
            _dollars(ours_micros),
            (lambda: self._sync_payment(payment.id)) if repairable else None,
        )

    async def _subscription_differences(self) -> AsyncIterator[Difference]:
        async with self._db.relay() as connection:
            ours = {row.state.processor_id: row for row in await queries.live(connection)}
        async for reported in self._processor.subscriptions():
            if found := await self._subscription_difference(reported, ours.pop(reported.id, None)):
                yield found
        for row in ours.values():
            yield Difference(
                row.account_id,
                row.state.processor_id,
                row.product,
                "ended",
                _describe_row(row),
                self._sync_repair(row.state.processor_id, row.account_id),
            )

    async def _subscription_difference(
        self, reported: Subscription, row: Row | None
    ) -> Difference | None:
        product = product_of(reported)
        if row is None:
            async with self._db.read(reported.account_id) as tx:
                current = await queries.find(tx, product)
            row = Row(reported.account_id, product, current) if current else None
        current = row.state if row else None
        if current and reported.id in current.replaced:
            # The processor still renews a subscription that another one has replaced.
            return Difference(
                reported.account_id,
                reported.id,
                product,
                _describe_reported(reported),
                "replaced",
                lambda: self._processor.end(reported.id),
            )
        outcome = next_state(current, reported, clock.now(), self._grace, self._position)
        if outcome.state == current:
            return None
        return Difference(
            reported.account_id,
            reported.id,
            product,
            _describe_reported(reported),
            _describe_row(row),
            self._sync_repair(reported.id, reported.account_id),
        )

    def _sync_repair(self, subscription_id: str, account_id: UUID) -> Callable[[], Awaitable[None]]:
        return lambda: self._sync(subscription_id, account_id)


def _dollars(amount_micros: int) -> str:
    dollars, cents = divmod(available_cents(amount_micros), 100)
    return f"${dollars:,}.{cents:02d}"


def _describe_row(row: Row | None) -> str:
    if row is None:
        return "nothing"
    state = row.state
    plan = state.next_plan or state.plan
    ends = ", cancelled at period end" if state.cancel_at_period_end else ""
    return (
        f"{state.status.lower()}, {plan.name} x {plan.seats}, until {_day(state.period_end)}{ends}"
    )


def _describe_reported(reported: Subscription) -> str:
    ends = ", cancelled at period end" if reported.cancel_at_period_end else ""
    plan = f"{reported.product} x {reported.seats}"
    return f"{reported.status}, {plan}, until {_day(reported.period_end)}{ends}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
