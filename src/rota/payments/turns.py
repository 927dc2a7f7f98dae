"""Transactions that wait for the payment processor: one at a time for each account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from rota.platform import membership
from rota.platform.db import NO_USER, AccountTransaction, Database
from rota.platform.shares import Shares

# Each of them keeps a database connection while it waits for the processor. An account has one of
# these places, and those that wait take turns.
MAX_CONCURRENT = 2
# How many of an account can wait, and for how long.
MAX_WAITING, MAX_WAIT_S = 64, 30.0


class Busy(Exception):
    """Another turn of the account is in progress."""


class PaymentTurns:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._shares = Shares(
            "payment_turns",
            "Other requests of the account wait for the payment processor. Try again later.",
            total=MAX_CONCURRENT,
            per_account=1,
            waiting=MAX_WAITING,
            wait_s=MAX_WAIT_S,
        )

    @asynccontextmanager
    async def of(
        self,
        account_id: UUID,
        user_id: UUID = NO_USER,
        *,
        right: str | None = None,
        wait: bool = True,
    ) -> AsyncIterator[AccountTransaction]:
        """A transaction that can ask the processor about the account.

        Other turns of the account wait, so the processor's answer stays current until the commit.
        Without `wait`, it raises Busy instead of waiting for another turn. It locks no row and no
        membership, so a slow processor blocks neither the account's other work nor the removal of
        the user. A user who is not a member any more, or lacks the right, is refused at the start.
        What the processor answers later is true whether the user has left or not.
        """
        if not wait and not self._shares.room(account_id):
            raise Busy
        number = int.from_bytes(account_id.bytes[8:], "big", signed=True)
        async with (
            self._shares.place(account_id),
            self._db.write(account_id, user_id, check_member=False) as tx,
        ):
            # The processor can be slower than a lock or an idle transaction may be otherwise.
            await tx.execute(
                "SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
            )
            if wait:
                await tx.execute("SELECT pg_advisory_xact_lock($1)", number)
            elif not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", number):
                raise Busy
            await membership.require(tx, right)
            yield tx
