"""Builds and signs the receipt of a task."""

from typing import Any
from uuid import UUID

from rota.audit import queries as audit
from rota.auth.caller import Caller
from rota.credits import queries as credits_queries
from rota.credits.queries import MovementFilter
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.ids import to_wire
from rota.platform.signatures import Signer
from rota.receipts import document
from rota.runs import steps
from rota.tasks import queries as tasks
from rota.tasks import review_queries

# More than a task can have.
MAX_MOVEMENTS = 1_000_000
# Each can have a result of 256 KiB.
CALLS_AT_ONCE = 16


class Receipts:
    def __init__(self, db: Database, signer: Signer, issuer: str) -> None:
        self._db = db
        self._signer = signer
        self._issuer = issuer

    async def get(self, caller: Caller, task_id: UUID | None) -> tuple[dict[str, Any], str]:
        """The receipt of a task as it is now, and the same document signed."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            task = await tasks.get(tx, task_id)
            calls: list[dict[str, Any]] = []
            place = (0, 0, 0)
            while found := await steps.after(tx, task.id, place, CALLS_AT_ONCE):
                calls += map(document.call, found)
                place = found[-1].place
            movements, _ = await credits_queries.filtered_movements(
                tx, MovementFilter(task_id=task.id), MAX_MOVEMENTS, 0
            )
            built = document.build(
                self._issuer,
                caller.account_id,
                task,
                await review_queries.all_of_task(tx, task.id),
                calls,
                reversed(movements),
                await audit.of_resource(tx, to_wire("task", task.id)),
                await audit.head(tx),
                clock.now(),
            )
        return built, self._signer.sign(document.KIND, built)
