"""What a retry of a task would repeat and cost."""

from dataclasses import dataclass, field
from uuid import UUID

from rota.auth.caller import Caller
from rota.credits.money import of_cents
from rota.platform.db import AccountReader, Database
from rota.platform.errors import ApiError
from rota.runs import forked_steps, steps
from rota.tasks import queries
from rota.tasks.creation import TaskCreation, run_budget_cents
from rota.tasks.model import Task
from rota.tasks.quotes import gates
from rota.tasks.retrying import RetryPlan, check_can_retry, plan_retry
from rota.tasks.schemas import STARTING_POINTS, StartingPoint
from rota.tasks.states import Gate


@dataclass(frozen=True, slots=True)
class RetryOption:
    start_at: StartingPoint
    version: int
    kept_steps: int
    repeated_steps: int
    kept_cost_micros: int
    maximum_cost_micros: int
    opens_gates: list[Gate]
    text_changed: bool


@dataclass(frozen=True, slots=True)
class RetryQuote:
    # Why a retry would be refused. None if there is a way.
    reason: str | None
    options: list[RetryOption] = field(default_factory=list)


class Retries:
    def __init__(self, db: Database, creation: TaskCreation) -> None:
        self._db = db
        self._creation = creation

    async def quote(self, caller: Caller, task_id: UUID | None) -> RetryQuote:
        """What each retry would do. It asks the code that a retry asks, so the two agree."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            task = await queries.get(tx, task_id)
            try:
                parent = await check_can_retry(tx, task)
            except ApiError as refused:
                return RetryQuote(refused.message)
            if not task.hosted:
                return RetryQuote(None)
            options: list[RetryOption] = []
            reason = None
            for start_at in STARTING_POINTS:
                try:
                    plan = await plan_retry(tx, self._creation, task, parent, caller.tier, start_at)
                except ApiError as refused:
                    # The newest version can need a higher tier than the version that failed.
                    reason = refused.message
                else:
                    options.append(await _option(tx, task, start_at, plan))
        return RetryQuote(None if options else reason, options)


async def _option(
    tx: AccountReader, task: Task, start_at: StartingPoint, plan: RetryPlan
) -> RetryOption:
    # The last run may have ended before it began. Then a retry continues an earlier one.
    kept = await steps.kept_run(tx, task, task.run + 1)
    finished, unfinished, cost_micros = await steps.progress(tx, task.id, kept)
    # What a fork began with is kept from the start too, even if the last run ended before it began.
    copied = await forked_steps.count(tx, task) if task.forked_step else 0
    finished = max(finished, copied)
    keeps = start_at == "failure"
    return RetryOption(
        start_at=start_at,
        version=plan.agent.version,
        kept_steps=finished if keeps else copied,
        repeated_steps=unfinished if keeps else finished - copied + unfinished,
        kept_cost_micros=cost_micros if keeps else 0,
        maximum_cost_micros=of_cents(run_budget_cents(plan.agent, task.budget_limit_cents)),
        opens_gates=gates(plan.agent, run=plan.opens_run_gate),
        text_changed=plan.text_changed,
    )
