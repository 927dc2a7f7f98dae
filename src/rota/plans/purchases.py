"""Buys, changes, cancels and resumes plans and the add-on."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.credits.payers import Payers
from rota.payments.intents import intent
from rota.payments.port import CONNECT_PASS, Checkout, Payer, Processor
from rota.plans import queries, schemas
from rota.plans.errors import (
    AlreadyCancelled,
    AlreadySubscribed,
    CancellationPending,
    ConcurrentChange,
    NothingToResume,
    NotSubscribed,
    PassAlreadyBought,
    PaymentOutstanding,
    PeriodEnding,
    SeatsBelowMembers,
    SubscriptionEnded,
)
from rota.plans.queries import PASS, PLAN, ProductKind
from rota.plans.schemas import (
    BillingResponse,
    CheckoutResponse,
    LowerPlanResponse,
    PassBillingResponse,
    PassCheckoutResponse,
    Subscribe,
    SubscriptionResponse,
    SubscriptionsResponse,
)
from rota.plans.service import Plans
from rota.plans.states import Plan, State, order
from rota.plans.tiers import Tiers
from rota.platform import clock
from rota.platform.db import AccountTransaction, Database
from rota.platform.http.schemas import Wire
from rota.platform.idempotency import Idempotency, Outcome

SUBSCRIBE = "POST /api/subscriptions/subscribe"
CHECKOUT_PASS = "POST /api/addons/connect-pass/checkout"
# A change that takes longer than this would change the next period, which was not paid for.
CLOSING = timedelta(minutes=2)


class Purchases:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        processor: Processor,
        payers: Payers,
        plans: Plans,
        *,
        tiers: Tiers,
        trial_days: int,
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._processor = processor
        self._payers = payers
        self._plans = plans
        self._tiers = tiers
        self._trial_days = trial_days

    async def overview(self, caller: Caller) -> SubscriptionsResponse:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            state = await queries.find(tx, PLAN)
            tier, user_tier = await accounts.tiers(tx, caller.user_id)
        return SubscriptionsResponse(
            subscription=self._plans.schema_of(state) if state else None,
            effective_tier=(tier or caller.tier).upper(),
            user_tier=(user_tier or caller.user_tier).upper(),
        )

    async def subscribe(self, caller: Caller, body: Subscribe, key: str | None) -> Outcome:
        """Creates a checkout for a higher plan. A lower plan starts with the next period."""
        account_id, request = caller.account_id, (SUBSCRIBE, body)
        async with self._db.read(account_id, caller.user_id) as tx:
            if stored := await self._idempotency.stored(tx, key, request):
                return stored
            current = await self._plans.find(tx, PLAN)
            seats = await members.seats(tx)
            # Each user gets one trial, not one with each company that the user creates.
            trial = current is None and not await accounts.is_self_made(tx)
        requested = self._requested_plan(caller, body, current, seats.taken, key)
        live = current if current is not None and current.live else None
        if live is not None and order(requested, self._tiers.position) <= self._order(live):
            try:
                return await self._lower(caller, body, key)
            except ConcurrentChange:
                # So that the next request sees what the processor has.
                await self._plans.sync(live.processor_id, account_id)
                raise
        replaces = live.processor_id if live else None

        def create(payer: Payer) -> Awaitable[Checkout]:
            return self._processor.plan_checkout(
                payer,
                requested.name,
                requested.seats,
                intent(key, SUBSCRIBE, caller.user_id, payer, requested, replaces),
                replaces=replaces,
                trial_days=self._trial_days if trial else 0,
            )

        checkout = await self._payers.checkout(caller, create)
        response = CheckoutResponse(
            checkout_url=checkout.url,
            plan=requested.name.upper(),
            seats=self._tiers.seats(requested),
        )
        return await self._store(caller, key, request, response)

    def _requested_plan(
        self, caller: Caller, body: Subscribe, current: State | None, taken: int, key: str | None
    ) -> Plan:
        """The requested plan. Raises if the account, with `taken` seats, cannot change to it.

        With an idempotency key, it can be the current one: a request whose response was lost.
        """
        live = current if current is not None and current.live else None
        requested = self._tiers.choose(
            body.plan, body.seats, caller.account_kind, live.plan if live else None
        )
        seats = self._tiers.seats(requested)
        if seats is not None and seats < taken:
            raise SeatsBelowMembers(seats, taken)
        if live is None:
            return requested
        if live.cancel_at_period_end:
            raise CancellationPending(live)
        if requested == (live.next_plan or live.plan):
            if live.status == "PAST_DUE":
                raise PaymentOutstanding(live)
            if key is None:
                raise AlreadySubscribed(live)
        return requested

    def _order(self, state: State) -> tuple[int, int]:
        return order(state.plan, self._tiers.position)

    async def _lower(self, caller: Caller, body: Subscribe, key: str | None) -> Outcome:
        """Changes the plan from the next period on: to a lower one, or back to the current one."""

        async def work(tx: AccountTransaction) -> LowerPlanResponse:
            current = await self._plans.find(tx, PLAN)
            if current is None or not current.live:
                raise ConcurrentChange
            # The next period may have begun, with another plan.
            current = await self._plans.reported(current)
            if current is None or not current.live:
                raise ConcurrentChange
            seats = await members.seats(tx)
            requested = self._requested_plan(caller, body, current, seats.taken, key)
            if order(requested, self._tiers.position) > self._order(current):
                raise ConcurrentChange
            if current.period_end - clock.now() < CLOSING:
                raise PeriodEnding
            reported = await self._processor.change(
                current.processor_id, requested.name, requested.seats
            )
            state = await self._plans.apply(tx, reported)
            assert state is not None
            return LowerPlanResponse(subscription=self._plans.schema_of(state))

        return await self._locked_for_sync(caller, key, (SUBSCRIBE, body), work)

    async def cancel(self, caller: Caller, key: str | None) -> Outcome:
        return await self._set_cancelled(caller, PLAN, True, key, self._subscription_response)

    async def resume(self, caller: Caller, key: str | None) -> Outcome:
        return await self._set_cancelled(caller, PLAN, False, key, self._subscription_response)

    def _subscription_response(self, state: State) -> Wire:
        return SubscriptionResponse(subscription=self._plans.schema_of(state))

    async def checkout_pass(self, caller: Caller, key: str | None) -> Outcome:
        account_id, request = caller.account_id, (CHECKOUT_PASS, None)
        async with self._db.read(account_id, caller.user_id) as tx:
            if stored := await self._idempotency.stored(tx, key, request):
                return stored
            current = await self._plans.find(tx, PASS)
        if current is not None and current.live:
            raise PassAlreadyBought(current)

        def create(payer: Payer) -> Awaitable[Checkout]:
            used_key = intent(key, CHECKOUT_PASS, caller.user_id, payer)
            return self._processor.plan_checkout(payer, CONNECT_PASS, 1, used_key)

        checkout = await self._payers.checkout(caller, create)
        response = PassCheckoutResponse(checkout_url=checkout.url)
        return await self._store(caller, key, request, response)

    async def cancel_pass(self, caller: Caller, key: str | None) -> Outcome:
        return await self._set_cancelled(caller, PASS, True, key, _billing_response)

    async def resume_pass(self, caller: Caller, key: str | None) -> Outcome:
        return await self._set_cancelled(caller, PASS, False, key, _billing_response)

    async def pass_billing(self, caller: Caller) -> PassBillingResponse:
        async with self._db.snapshot(caller.account_id) as tx:
            state = await self._plans.find(tx, PASS)
            trial = await queries.trial(tx)
        return PassBillingResponse(
            billing=schemas.PassBilling.of(state) if state else None,
            trial=schemas.Trial.of(trial, clock.now()) if trial else None,
        )

    async def _set_cancelled(
        self,
        caller: Caller,
        product: ProductKind,
        cancelled: bool,
        key: str | None,
        response: Callable[[State], Wire],
    ) -> Outcome:
        """Sets or clears the cancellation at the end of the period.

        With an idempotency key, it can be so already: the response of the request was lost.
        """

        async def work(tx: AccountTransaction) -> Wire:
            current = await self._plans.find(tx, product)
            if current is None:
                raise NotSubscribed(product)
            if not current.live:
                raise SubscriptionEnded(product)
            if key is None and cancelled == current.cancel_at_period_end:
                raise AlreadyCancelled(product, current) if cancelled else NothingToResume(product)
            reported = await self._processor.cancel(current.processor_id, at_period_end=cancelled)
            state = await self._plans.apply(tx, reported)
            assert state is not None
            return response(state)

        operation = f"{'cancel' if cancelled else 'resume'} {product}"
        return await self._locked_for_sync(caller, key, (operation, None), work)

    async def _store(
        self,
        caller: Caller,
        key: str | None,
        request: tuple[str, Subscribe | None],
        response: Wire,
    ) -> Outcome:
        """Stores the response for the idempotency key."""

        async def work() -> Wire:
            tx.record("subscription.checkout_created", {"operation": request[0]})
            return response

        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            return await self._idempotency.once(tx, key, request, 200, work)

    async def _locked_for_sync(
        self,
        caller: Caller,
        key: str | None,
        request: tuple[str, Subscribe | None],
        work: Callable[[AccountTransaction], Awaitable[Wire]],
    ) -> Outcome:
        """Runs `work` once for each idempotency key, while no other sync of the account runs."""
        async with self._plans.locked_for_sync(
            caller.account_id, caller.user_id, right=caller.right
        ) as tx:
            return await self._idempotency.once(tx, key, request, 200, lambda: work(tx))


def _billing_response(state: State) -> Wire:
    return BillingResponse(billing=schemas.PassBilling.of(state))
