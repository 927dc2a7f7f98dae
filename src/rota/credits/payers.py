"""An account as the payment processor knows it: one customer, made before the first checkout."""

from collections.abc import Awaitable, Callable

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.payments import customers
from rota.payments.intents import intent
from rota.payments.port import Checkout, CustomerUnknown, Payer, Processor
from rota.payments.turns import PaymentTurns
from rota.platform import membership
from rota.platform.db import Database


class Payers:
    def __init__(self, db: Database, processor: Processor, turns: PaymentTurns) -> None:
        self._db = db
        self._processor = processor
        self._turns = turns

    async def checkout(
        self, caller: Caller, create: Callable[[Payer], Awaitable[Checkout]]
    ) -> Checkout:
        """Creates a checkout, with a new customer if the processor does not know the old one."""
        payer = await self.of(caller)
        try:
            return await create(payer)
        except CustomerUnknown as error:
            return await create(await self.of(caller, unknown=error.customer_id))

    async def of(self, caller: Caller, *, unknown: str | None = None) -> Payer:
        """The account's customer. A new one if the processor does not know `unknown`."""
        account_id = caller.account_id
        async with self._db.read(account_id, caller.user_id) as tx:
            customer_id = await customers.find(tx)
            if customer_id is not None and customer_id != unknown:
                return Payer(account_id, customer_id)
            # A company's customer is not tied to the member who buys first: the checkout asks.
            personal = caller.account_kind == "personal"
            email = await accounts.email(tx, caller.user_id) if personal else None
        async with self._turns.of(account_id, caller.user_id, right=caller.right) as tx:
            # A concurrent checkout may have created the customer.
            customer_id = await customers.find(tx)
            if customer_id is None or customer_id == unknown:
                # The same key finds the customer again if this transaction does not commit.
                key = intent("customer", account_id, email, unknown)
                customer_id = await self._processor.create_customer(account_id, email, key)
                await membership.require(tx, caller.right)
                await customers.remember(tx, customer_id)
        return Payer(account_id, customer_id)
