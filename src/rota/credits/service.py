"""Showing what an account has and used, and taking what it pays."""

from datetime import date, timedelta

import structlog

from rota.auth.caller import Caller
from rota.credits import ledger, metrics, queries
from rota.credits.allowance import AllowanceOf, refresh
from rota.credits.money import available_cents, of_cents
from rota.credits.queries import Balance, GroupBy, Movement, Usage
from rota.credits.schemas import TopUp, TopUpResponse
from rota.events import journal
from rota.payments import customers
from rota.payments.intents import intent
from rota.payments.port import Payment, Processor
from rota.platform import clock, ids
from rota.platform.db import Database
from rota.platform.idempotency import Idempotency, Outcome

OPERATION = "POST /api/credits/topup"

log = structlog.get_logger()


class Credits:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        processor: Processor,
        allowance_of: AllowanceOf,
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._processor = processor
        self._allowance_of = allowance_of

    async def balance(self, caller: Caller) -> Balance:
        """What the account has now, with a month's beginning or another tier counted in."""
        account_id, now = caller.account_id, clock.now()
        async with self._db.snapshot(account_id) as tx:
            if not await queries.is_stale(tx, now):
                return await queries.balance(tx)
        async with self._db.write(account_id) as tx:
            await refresh(tx, self._allowance_of, now)
            return await queries.balance(tx)

    async def set_overflow(self, caller: Caller, allowed: bool) -> None:
        caller.check_may_bill()
        async with self._db.write(caller.account_id) as tx:
            await queries.set_overflow(tx, allowed)

    async def top_up(self, caller: Caller, body: TopUp, idempotency_key: str | None) -> Outcome:
        """Asks the processor for a checkout, with no transaction open meanwhile."""
        caller.check_may_bill()
        account_id, request = caller.account_id, (OPERATION, body)
        async with self._db.read(account_id, caller.user_id) as tx:
            stored = await self._idempotency.stored(tx, idempotency_key, request)
            if stored is not None:
                return stored
            payer = await queries.payer(tx, caller.user_id)
        checkout = await self._processor.top_up_checkout(
            payer, body.amount_cents, intent(idempotency_key, OPERATION, payer, body)
        )

        async def answer() -> TopUpResponse:
            return TopUpResponse(checkout_url=checkout.url, amount=body.amount_cents)

        async with self._db.write(account_id) as tx:
            return await self._idempotency.once(tx, idempotency_key, request, 200, answer)

    async def take_payment(self, payment: Payment) -> None:
        """Adds a payment and takes back what was refunded of it, each once, in any order."""
        account_id = payment.account_id
        async with self._db.write(account_id) as tx:
            if not await journal.lock_account(tx):
                log.error(
                    "a payment names no account of ours",
                    payment=payment.id,
                    account=ids.to_wire("acct", account_id),
                )
                return
            cents = payment.amount_cents
            if not await ledger.top_up(tx, of_cents(cents), payment.id):
                cents = 0
            refunded = await ledger.refund(tx, of_cents(payment.refunded_cents), payment.id)
            # A subscription's customer comes first: what is credited to it pays the next plan.
            if payment.customer_id and await customers.find(tx) is None:
                await customers.remember(tx, payment.customer_id)
            if cents or refunded:
                amount = cents - available_cents(refunded)
                data = {"amountCents": amount, "reference": payment.id}
                await journal.append(tx, "credits.topped_up", data)
        metrics.TOPPED_UP_CENTS.inc(cents)
        metrics.REFUNDED_CENTS.inc(available_cents(refunded))

    async def movements(
        self, caller: Caller, limit: int, offset: int
    ) -> tuple[list[Movement], int]:
        async with self._db.snapshot(caller.account_id) as tx:
            return await queries.movements(tx, limit, offset)

    async def usage(
        self, caller: Caller, first: date, last: date, group_by: GroupBy
    ) -> list[Usage]:
        """What was used from the first to the last day; by day, also the days without use."""
        async with self._db.read(caller.account_id) as tx:
            found = await queries.usage(tx, first, last, group_by)
        if group_by != "day":
            return found
        used = {each.key: each for each in found}
        days = [str(first + timedelta(n)) for n in range((last - first).days + 1)]
        return [used.get(day) or Usage(day, 0, 0, 0, 0) for day in days]
