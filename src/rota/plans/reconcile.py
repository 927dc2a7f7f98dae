"""Compares the processor's books with ours, in both directions, and mends what was missed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from rota.credits.money import of_cents
from rota.payments.port import Payment, Processor, Subscription
from rota.plans import queries
from rota.plans.queries import Booked, Row
from rota.plans.service import product_of
from rota.plans.states import Rank, next_state
from rota.platform import clock
from rota.platform.db import Database

# A payment is entered some time after it began: when people take long, or messages do.
MARGIN = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Difference:
    account_id: UUID
    # The processor's name of the payment or the subscription.
    id: str
    what: str
    theirs: str
    ours: str
    # What brings our books up to date; None where somebody has to look.
    mend: Callable[[], Awaitable[None]] | None = None


class Reconciliation:
    def __init__(
        self,
        db: Database,
        processor: Processor,
        take_payment: Callable[[Payment], Awaitable[None]],
        sync: Callable[[str, UUID], Awaitable[None]],
        *,
        rank: Rank,
        grace: timedelta,
    ) -> None:
        self._db = db
        self._processor = processor
        self._take_payment = take_payment
        self._sync = sync
        self._rank = rank
        self._grace = grace

    async def differences(self, since: datetime) -> AsyncIterator[Difference]:
        """Of payments since then, and of every subscription that is live here or there."""
        async for difference in self._of_payments(since):
            yield difference
        async for difference in self._of_subscriptions():
            yield difference

    async def _of_payments(self, since: datetime) -> AsyncIterator[Difference]:
        paid: dict[UUID, list[Payment]] = {}
        async for payment in self._processor.payments(since - MARGIN):
            paid.setdefault(payment.account_id, []).append(payment)
        async with self._db.relay() as connection:
            accounts = {*paid, *await queries.accounts_with_money(connection)}
        for account_id in sorted(accounts):
            async with self._db.read(account_id) as tx:
                booked = await queries.booked(tx)
            for payment in paid.get(account_id, ()):
                if found := self._of_payment(payment, booked.pop(payment.id, Booked())):
                    yield found
            for reference, ours in booked.items():
                if ours.at is not None and ours.at >= since:
                    yield Difference(account_id, reference, "top-up", "nothing", _money(ours.paid))

    def _of_payment(self, payment: Payment, ours: Booked) -> Difference | None:
        theirs = Booked(of_cents(payment.amount_cents), of_cents(payment.refunded_cents))
        if theirs.paid == ours.paid and theirs.refunded == ours.refunded:
            return None
        what = "top-up" if theirs.paid != ours.paid else "refund"
        shown = [
            _money(book.paid if what == "top-up" else book.refunded) for book in (theirs, ours)
        ]
        missed = ours.paid in (0, theirs.paid) and ours.refunded <= theirs.refunded
        mend = (lambda: self._take_payment(payment)) if missed else None
        return Difference(payment.account_id, payment.id, what, shown[0], shown[1], mend)

    async def _of_subscriptions(self) -> AsyncIterator[Difference]:
        async with self._db.relay() as connection:
            ours = {row.state.processor_id: row for row in await queries.live(connection)}
        async for seen in self._processor.subscriptions():
            if found := await self._of_subscription(seen, ours.pop(seen.id, None)):
                yield found
        for row in ours.values():
            yield Difference(
                row.account_id,
                row.state.processor_id,
                row.product,
                "ended",
                _words(row),
                self._mended(row.state.processor_id, row.account_id),
            )

    async def _of_subscription(self, seen: Subscription, row: Row | None) -> Difference | None:
        product = product_of(seen)
        if row is None:
            async with self._db.read(seen.account_id) as tx:
                current = await queries.find(tx, product)
            row = Row(seen.account_id, product, current) if current else None
        current = row.state if row else None
        if current and seen.id in current.replaced:
            # Another has taken its place; it should not be paid for any longer.
            return Difference(
                seen.account_id,
                seen.id,
                product,
                _seen_words(seen),
                "replaced",
                lambda: self._processor.end(seen.id),
            )
        outcome = next_state(current, seen, clock.now(), self._grace, self._rank)
        if outcome.state == current:
            return None
        return Difference(
            seen.account_id,
            seen.id,
            product,
            _seen_words(seen),
            _words(row),
            self._mended(seen.id, seen.account_id),
        )

    def _mended(self, subscription_id: str, account_id: UUID) -> Callable[[], Awaitable[None]]:
        return lambda: self._sync(subscription_id, account_id)


def _money(micros: int) -> str:
    return f"${micros / 1_000_000:,.2f}"


def _words(row: Row | None) -> str:
    if row is None:
        return "nothing"
    state = row.state
    ends = ", ends with its period" if state.cancel_at_period_end else ""
    plan = state.next_plan or state.plan
    return f"{state.status.lower()}, {plan.name} x {plan.seats}, to {_day(state.period_end)}{ends}"


def _seen_words(seen: Subscription) -> str:
    ends = ", ends with its period" if seen.cancel_at_period_end else ""
    return f"{seen.status}, {seen.product} x {seen.seats}, to {_day(seen.period_end)}{ends}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
