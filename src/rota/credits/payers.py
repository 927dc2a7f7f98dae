"""An account as the payment processor knows it: one customer, made before the first checkout."""

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.payments import customers
from rota.payments.intents import intent
from rota.payments.port import Payer, Processor
from rota.payments.turns import Turns
from rota.platform import membership
from rota.platform.db import Database


class Payers:
    def __init__(self, db: Database, processor: Processor, turns: Turns) -> None:
        self._db = db
        self._processor = processor
        self._turns = turns

    async def of(self, caller: Caller) -> Payer:
        account_id = caller.account_id
        async with self._db.read(account_id, caller.user_id) as tx:
            if (customer_id := await customers.find(tx)) is not None:
                return Payer(account_id, customer_id)
            # A company's customer is not tied to the member who buys first: the checkout asks.
            personal = caller.account_kind == "personal"
            email = await accounts.email(tx, caller.user_id) if personal else None
        async with self._turns.of(account_id, caller.user_id, right=caller.right) as tx:
            # A concurrent checkout may have created the customer.
            customer_id = await customers.find(tx)
            if customer_id is None:
                # The same key finds the customer again if this transaction does not commit.
                key = intent("customer", account_id, email)
                customer_id = await self._processor.create_customer(account_id, email, key)
                await membership.require(tx, caller.right)
                await customers.remember(tx, customer_id)
        return Payer(account_id, customer_id)
