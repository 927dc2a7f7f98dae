"""Keeps subscriptions in step with the processor, and the tiers of accounts with them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from rota.events import journal, outbox
from rota.events.outbox import Handler, Instruction, Reschedule
from rota.payments import customers
from rota.payments.port import CONNECT_PASS, PaymentFailed, Processor, Subscription
from rota.plans import queries, schemas, states
from rota.plans.queries import PASS, PLAN, ProductKind, Row
from rota.plans.states import Plan, State, next_state
from rota.plans.tiers import Tiers
from rota.platform import clock
from rota.platform.db import (
    AccountReader,
    AccountTransaction,
    Database,
)

log = structlog.get_logger()

END = "plans.end"
# Each holds a connection while the processor takes its time, so they are few in a process.
AT_ONCE = 2
# After so many in a row that it did not answer, the processor is left alone for this sweep.
ENOUGH_FAILURES = 3


class Plans:
    def __init__(
        self,
        db: Database,
        processor: Processor,
        *,
        tiers: Tiers,
        grace: timedelta,
    ) -> None:
        self._db = db
        self._processor = processor
        self._tiers = tiers
        self._grace = grace
        self._turns = asyncio.Semaphore(AT_ONCE)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """For a relay."""
        return {END: self._end}

    async def sync(self, subscription_id: str, account_id: UUID) -> None:
        """Asks the processor what a subscription is like now, and goes by that."""
        async with self.locked_for_sync(account_id) as tx:
            seen = await self._processor.subscription(subscription_id)
            if seen.account_id != account_id:
                log.error("a subscription is another account's", subscription=subscription_id)
                return
            await self.apply(tx, seen)

    @asynccontextmanager
    async def locked_for_sync(self, account_id: UUID) -> AsyncIterator[AccountTransaction]:
        """A transaction in which the processor may be asked about the account's subscriptions.

        Nobody else asks about them meanwhile, so what it answers is the latest that there is.
        """
        async with self._turns, self._db.write(account_id) as tx:
            await queries.lock_subscriptions(tx)
            yield tx

    async def apply(self, tx: AccountTransaction, seen: Subscription) -> State | None:
        """Goes by what the processor has just said. Call it inside `locked_for_sync`."""
        product = product_of(seen)
        if product == PLAN and seen.product not in self._tiers:
            log.error("a subscription is for no plan of ours", plan=seen.product, id=seen.id)
            return None
        if not await queries.lock_account(tx):
            log.error("a subscription names no account of ours", id=seen.id)
            return None
        current = await queries.find(tx, product)
        state = await self.save_transition(tx, product, current, seen)
        if state is not None and state.processor_id == seen.id:
            await customers.remember(tx, seen.customer_id)
        return state

    async def save_transition(
        self,
        tx: AccountTransaction,
        product: ProductKind,
        current: State | None,
        seen: Subscription | None,
    ) -> State | None:
        """Writes down what follows, with the event that tells of it."""
        now = clock.now()
        outcome = next_state(current, seen, now, self._grace, self._tiers.rank)
        for old in outcome.end:
            payload = {"subscriptionId": old}
            await outbox.put(tx, Instruction(tx.account_id, END, None, payload))
        state = outcome.state
        if state is None:
            return None
        due_at = states.due_at(state, now, self._grace)
        await queries.put(tx, product, state, due_at, now)
        if product == PLAN and _gives(current) != _gives(state):
            tier = state.plan.name if state.entitled else self._tiers.lowest
            seats = self._tiers.seats(state.plan) if state.entitled else None
            await queries.set_tier(tx, tier, seats)
        data = self.event_payload(product, state)
        if current is None or data != self.event_payload(product, current):
            await journal.append(tx, "subscription.updated", data)
        return state

    def event_payload(self, product: ProductKind, state: State) -> dict[str, Any]:
        shape = self.shape(state).model_dump(mode="json", by_alias=True)
        if product == PASS:
            # It has no tier, and never changes the account's.
            for field in ("tier", "seats", "downgradeTarget", "downgradeSeats"):
                shape.pop(field)
        return {"product": product, **shape}

    def shape(self, state: State) -> schemas.Subscription:
        following = state.next_plan
        return schemas.Subscription(
            tier=(state.plan.name if state.entitled else self._tiers.lowest).upper(),
            status=state.status,
            seats=self._tiers.seats(state.plan),
            current_period_start=state.period_start,
            current_period_end=state.period_end,
            cancel_at_period_end=state.cancel_at_period_end,
            downgrade_target=following.name.upper() if following else None,
            downgrade_seats=self._tiers.seats(following) if following else None,
        )

    async def expire_due(self, limit: int) -> int:
        """Looks at subscriptions of any account for which time has run out; tells how many."""
        async with self._db.relay() as connection:
            due = await queries.due(connection, clock.now(), limit)
        failures = 0
        for row in due:
            try:
                answered = await self._look(row, ask=failures < ENOUGH_FAILURES)
                failures = 0 if answered else failures + 1
            except Exception:
                # One that cannot be looked at does not keep the others waiting.
                log.exception("a subscription could not be looked at", id=row.state.processor_id)
        return len(due)

    async def _look(self, row: Row, *, ask: bool) -> bool:
        """Whether the processor has answered. What time alone decides does not wait for that."""
        account_id, answered = row.account_id, False
        async with self.locked_for_sync(account_id) as tx:
            if not await queries.is_due(tx, row.product, clock.now()):
                return True  # Another worker was faster.
            seen: Subscription | None = None
            if ask:
                try:
                    seen = await self._processor.subscription(row.state.processor_id)
                    answered = True
                except PaymentFailed as error:
                    log.warning("the processor was not asked", reason=error.message)
            await queries.lock_account(tx)
            current = await queries.find(tx, row.product)
            await self.save_transition(tx, row.product, current, seen)
        return answered

    async def _end(self, instruction: Instruction) -> Reschedule | None:
        """Nobody pays for a subscription that another has taken the place of."""
        await self._processor.end(instruction.payload["subscriptionId"])
        return None

    async def has_pass(self, tx: AccountReader) -> bool:
        """Whether the account has the personal add-on, paid for or on trial."""
        now = clock.now()
        trial = await queries.trial(tx)
        if trial is not None and trial.ends_at > now:
            return True
        state = await self.find(tx, PASS)
        return state is not None and state.entitled

    async def find(self, tx: AccountReader, product: ProductKind) -> State | None:
        """The subscription at this moment, also when no sweep has seen yet that time ran out."""
        state = await queries.find(tx, product)
        return states.at(state, clock.now(), self._grace) if state else None


def product_of(seen: Subscription) -> ProductKind:
    return PASS if seen.product == CONNECT_PASS else PLAN


def _gives(state: State | None) -> Plan | None:
    """What the account's tier and seats follow from."""
    return state.plan if state is not None and state.entitled else None
