"""Keeps subscriptions in sync with the processor, and accounts' tiers with subscriptions."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.credits.allowance import AllowanceOf, refresh
from rota.events import journal, outbox
from rota.events.outbox import Handler, Instruction, Reschedule, Unavailable
from rota.payments import customers
from rota.payments.port import (
    CONNECT_PASS,
    PaymentFailed,
    Processor,
    ProcessorUnavailable,
    Subscription,
    SubscriptionUnknown,
)
from rota.payments.turns import Busy, PaymentTurns
from rota.plans import queries, schemas, states
from rota.plans.queries import PASS, PLAN, ProductKind, Row
from rota.plans.states import Plan, State, next_state
from rota.plans.tiers import Tiers
from rota.platform import clock, ids
from rota.platform.db import NO_USER, AccountReader, AccountTransaction, Database

log = structlog.get_logger()

END = "plans.end"
# After this many failures in a row, a sweep stops calling the processor.
MAX_FAILURES = 3


class Plans:
    def __init__(
        self,
        db: Database,
        processor: Processor,
        turns: PaymentTurns,
        allowance_of: AllowanceOf,
        *,
        tiers: Tiers,
        grace: timedelta,
    ) -> None:
        self._db = db
        self._processor = processor
        self._turns = turns
        self._allowance_of = allowance_of
        self._tiers = tiers
        self._grace = grace

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The outbox handlers, for a relay."""
        return {END: self._end}

    async def sync(self, subscription_id: str, account_id: UUID) -> None:
        """Reads the current state of a subscription from the processor and applies it."""
        async with self.locked_for_sync(account_id) as tx:
            reported = await self._processor.subscription(subscription_id)
            if reported.account_id != account_id:
                log.error("subscription_wrong_account", subscription_id=subscription_id)
                return
            await self.apply(tx, reported)

    def locked_for_sync(
        self, account_id: UUID, user_id: UUID = NO_USER, *, right: str | None = None
    ) -> AbstractAsyncContextManager[AccountTransaction]:
        """A transaction that can read the account's subscriptions from the processor."""
        return self._turns.of(account_id, user_id, right=right)

    async def apply(self, tx: AccountTransaction, reported: Subscription) -> State | None:
        """Applies the processor's state of a subscription. Call it inside `locked_for_sync`."""
        product = product_of(reported)
        if product == PLAN and reported.product not in self._tiers:
            log.error(
                "subscription_unknown_plan", plan=reported.product, subscription_id=reported.id
            )
            return None
        if not await queries.lock_account(tx):
            log.error("subscription_unknown_account", subscription_id=reported.id)
            return None
        if reported.status != "ended" and not await accounts.is_open(tx):
            # It was paid after the erasure. Nobody could cancel it.
            log.error(
                "subscription_of_erased_account",
                subscription_id=reported.id,
                account_id=ids.to_wire("acct", tx.account_id),
            )
            payload = {"subscriptionId": reported.id}
            await outbox.put(tx, Instruction(tx.account_id, END, None, payload))
            tx.record("subscription.refused", payload)
            return None
        current = await queries.find(tx, product)
        state = await self.save_transition(tx, product, current, reported)
        if state is not None and state.processor_id == reported.id:
            await customers.remember(tx, reported.customer_id)
        return state

    async def save_transition(
        self,
        tx: AccountTransaction,
        product: ProductKind,
        current: State | None,
        reported: Subscription | None,
        *,
        unknown: bool = False,
    ) -> State | None:
        """Saves the next state, the account's tier and the event.

        A subscription that the processor does not know ends after a grace period, which is long
        enough to correct a wrong key of the processor.
        """
        now = clock.now()
        outcome = next_state(current, reported, now, self._grace, self._tiers.position)
        if unknown and outcome.state and outcome.state.period_end + self._grace <= now:
            outcome = states.Outcome(states.ended(outcome.state))
        for replaced_id in outcome.end:
            payload = {"subscriptionId": replaced_id}
            await outbox.put(tx, Instruction(tx.account_id, END, None, payload))
        state = outcome.state
        if state is None:
            return None
        due_at = states.due_at(state, now, self._grace)
        await queries.put(tx, product, state, due_at, now)
        if product == PLAN and _entitled_plan(current) != _entitled_plan(state):
            tier = state.plan.name if state.entitled else self._tiers.lowest
            seats = self._tiers.seats(state.plan) if state.entitled else None
            await accounts.set_tier(tx, tier)
            await accounts.set_seats(tx, seats)
            limited = await members.seats(tx)
            if limited.limit is not None and limited.taken > limited.limit:
                # All members keep their access, but none can be added.
                exceeded = {"seats": limited.limit, "members": limited.taken}
                await journal.append(tx, "company.seats_exceeded", exceeded)
        replaces = current and current.live and state.processor_id != current.processor_id
        if product == PLAN and (replaces or _entitled_plan(current) != _entitled_plan(state)):
            # Now, because the unused part of the old plan is credited now.
            await refresh(tx, self._allowance_of, now, is_new_plan=True)
        elif product == PLAN and _awaits_payment(current) and _is_paid(state):
            # Now, because a task that starts next can need the new allowance.
            await refresh(tx, self._allowance_of, now, is_paid_now=True)
        data = self.event_payload(product, state)
        if current is None or data != self.event_payload(product, current):
            await journal.append(tx, "subscription.updated", data)
        elif state != current:
            tx.record("subscription.synced", {"product": product})
        return state

    def event_payload(self, product: ProductKind, state: State) -> dict[str, Any]:
        fields = self.schema_of(state).model_dump(mode="json", by_alias=True)
        if product == PASS:
            # The add-on has no tier and never changes the account's tier.
            for name in ("tier", "seats", "downgradeTarget", "downgradeSeats"):
                fields.pop(name)
        return {"product": product, **fields}

    def schema_of(self, state: State) -> schemas.Subscription:
        next_plan = state.next_plan
        return schemas.Subscription(
            tier=(state.plan.name if state.entitled else self._tiers.lowest).upper(),
            status=state.status,
            seats=self._tiers.seats(state.plan),
            current_period_start=state.period_start,
            current_period_end=state.period_end,
            cancel_at_period_end=state.cancel_at_period_end,
            downgrade_target=next_plan.name.upper() if next_plan else None,
            downgrade_seats=self._tiers.seats(next_plan) if next_plan else None,
        )

    async def expire_due(self, limit: int) -> int:
        """Updates all due subscriptions, reading `limit` at a time. Returns how many were due."""
        now, found, failures = clock.now(), 0, 0
        due: list[Row] = []
        while not found or len(due) == limit:
            async with self._db.relay() as connection:
                due = await queries.due(connection, now, limit, due[-1] if due else None)
            if not due:
                break
            found += len(due)
            failures = await self._update_all(due, failures)
        return found

    async def _update_all(self, due: Sequence[Row], failures: int) -> int:
        """Updates these subscriptions. Returns how often in a row the processor has failed."""
        for row in due:
            try:
                answered = await self._update_due(row, ask_processor=failures < MAX_FAILURES)
                failures = 0 if answered else failures + 1
            except Busy:
                continue  # Another worker is updating it.
            except Exception:
                # A failure must not delay the other subscriptions.
                subscription_id = row.state.processor_id
                log.exception("subscription_update_failed", subscription_id=subscription_id)
        return failures

    async def _update_due(self, row: Row, *, ask_processor: bool) -> bool:
        """Saves the state that follows from the processor, or from the time if it does not respond.

        Returns whether the processor answered.
        """
        account_id, answered = row.account_id, False
        async with self._turns.of(account_id, wait=False) as tx:
            if not await queries.is_due(tx, row.product, clock.now()):
                return True  # Another worker has updated it.
            reported: Subscription | None = None
            unknown = False
            if ask_processor:
                try:
                    reported = await self._processor.subscription(row.state.processor_id)
                    answered = True
                except SubscriptionUnknown:
                    answered = unknown = True
                except PaymentFailed as error:
                    log.warning("processor_unavailable", error=error.message)
            await queries.lock_account(tx)
            current = await queries.find(tx, row.product)
            await self.save_transition(tx, row.product, current, reported, unknown=unknown)
        return answered

    async def _end(self, instruction: Instruction) -> Reschedule | None:
        """Ends a subscription that another one has replaced."""
        try:
            await self._processor.end(instruction.payload["subscriptionId"])
        except ProcessorUnavailable as error:
            raise Unavailable(error.message) from error
        return None

    async def has_pass(self, tx: AccountReader) -> bool:
        """Whether the account has the personal add-on, paid or on trial."""
        now = clock.now()
        trial = await queries.trial(tx)
        if trial is not None and trial.ends_at > now:
            return True
        state = await self.find(tx, PASS)
        return state is not None and state.entitled

    async def reported(self, current: State) -> State | None:
        """The subscription as the processor has it now. Nothing is saved, and nothing locked."""
        reported = await self._processor.subscription(current.processor_id)
        now = clock.now()
        return next_state(current, reported, now, self._grace, self._tiers.position).state

    async def find(self, tx: AccountReader, product: ProductKind) -> State | None:
        """The subscription at this moment, even if a sweep has not updated it yet."""
        state = await queries.find(tx, product)
        return states.state_at(state, clock.now(), self._grace) if state else None


def product_of(reported: Subscription) -> ProductKind:
    return PASS if reported.product == CONNECT_PASS else PLAN


def _entitled_plan(state: State | None) -> Plan | None:
    """The plan that determines the account's tier and seats."""
    return state.plan if state is not None and state.entitled else None


def _awaits_payment(state: State | None) -> bool:
    """Whether the next month of the allowance starts with a payment."""
    return state is not None and (state.status == "TRIALING" or state.unpaid_since is not None)


def _is_paid(state: State) -> bool:
    return state.status == "ACTIVE" and state.unpaid_since is None
