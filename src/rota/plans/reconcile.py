"""Compares the payment processor's records with ours, in both directions, and repairs ours."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from rota.credits import queries as credits_queries
from rota.credits.money import available_cents, of_cents
from rota.credits.queries import RecordedPayment
from rota.payments.port import Payment, Processor, Subscription
from rota.plans import queries
from rota.plans.queries import Row
from rota.plans.service import product_of
from rota.plans.states import Position, next_state
from rota.platform import clock
from rota.platform.db import Database

# A payment can be recorded days after it started, so earlier payments are compared too.
MARGIN = timedelta(days=7)


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
        take_payment: Callable[[Payment], Awaitable[None]],
        sync: Callable[[str, UUID], Awaitable[None]],
        *,
        position: Position,
        grace: timedelta,
    ) -> None:
        self._db = db
        self._processor = processor
        self._take_payment = take_payment
        self._sync = sync
        self._position = position
        self._grace = grace

    async def differences(self, since: datetime) -> AsyncIterator[Difference]:
        """Differences in payments since then, and in every subscription that is live."""
        async for difference in self._payment_differences(since):
            yield difference
        async for difference in self._subscription_differences():
            yield difference

    async def _payment_differences(self, since: datetime) -> AsyncIterator[Difference]:
        theirs: dict[UUID, list[Payment]] = {}
        async for payment in self._processor.payments(since - MARGIN):
            theirs.setdefault(payment.account_id, []).append(payment)
        async with self._db.relay() as connection:
            accounts = {*theirs, *await credits_queries.accounts_with_entries(connection)}
        for account_id in sorted(accounts):
            async with self._db.read(account_id) as tx:
                recorded = await credits_queries.recorded_payments(tx)
            for payment in theirs.get(account_id, ()):
                ours = recorded.pop(payment.id, RecordedPayment())
                if found := self._payment_difference(payment, ours):
                    yield found
            for payment_id, ours in recorded.items():
                if ours.at is not None and ours.at >= since:
                    amount = _dollars(ours.paid_micros)
                    yield Difference(account_id, payment_id, "top-up", "nothing", amount)

    def _payment_difference(self, payment: Payment, ours: RecordedPayment) -> Difference | None:
        paid_micros = of_cents(payment.amount_cents)
        refunded_micros = of_cents(payment.refunded_cents)
        if paid_micros != ours.paid_micros:
            kind, theirs_micros, ours_micros = "top-up", paid_micros, ours.paid_micros
        elif refunded_micros != ours.refunded_micros:
            kind, theirs_micros, ours_micros = "refund", refunded_micros, ours.refunded_micros
        else:
            return None
        # Recording the payment again adds what is missing, but cannot take anything back.
        repairable = (
            ours.paid_micros in (0, paid_micros) and ours.refunded_micros <= refunded_micros
        )
        return Difference(
            payment.account_id,
            payment.id,
            kind,
            _dollars(theirs_micros),
            _dollars(ours_micros),
            (lambda: self._take_payment(payment)) if repairable else None,
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
