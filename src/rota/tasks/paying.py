"""Where a run's money comes from."""

from rota.credits import holds, metrics
from rota.credits.allowance import AllowanceOf
from rota.credits.holds import InsufficientCredits
from rota.credits.ledger import RunId
from rota.credits.money import of_cents
from rota.platform.db import AccountTransaction
from rota.tasks.model import Task


def payer(task: Task) -> RunId:
    return RunId(task.id, task.run)


async def reserve(
    tx: AccountTransaction,
    task: Task,
    parent: Task | None,
    budget_cents: int,
    allowance_of: AllowanceOf,
) -> None:
    """Holds what the task's run may spend. Below a task that is run here, that one pays."""
    micros = of_cents(budget_cents)
    if parent is not None and await holds.hold_under(tx, payer(task), payer(parent), micros):
        return
    if not await holds.hold(tx, payer(task), micros, allowance_of):
        metrics.REFUSED.inc()
        raise InsufficientCredits(budget_cents)
