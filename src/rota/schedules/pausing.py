"""Pauses the schedules of a user who leaves the account, or of an account that is erased."""

from uuid import UUID

from rota.events import journal
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.schedules import queries
from rota.schedules.errors import OwnerCannotAct


async def pause_of(tx: AccountTransaction, user_id: UUID) -> None:
    """Pauses what the user saved last. Another user who saves a schedule lets it continue."""
    refused = OwnerCannotAct()
    error = {"code": str(refused.code), "message": refused.message}
    for schedule_id in await queries.pause_of(tx, user_id, error):
        data = {"scheduleId": ids.to_wire("sched", schedule_id), "error": error}
        await journal.append(tx, "schedule.failed", data)


async def pause_all(tx: AccountTransaction, *, wait: bool = True) -> None:
    """Pauses every schedule of the account, without an event for each.

    A transaction that has locked the account must not `wait` for schedules: whoever has locked one
    may be waiting for the account.
    """
    await queries.pause_all(tx, wait=wait)
