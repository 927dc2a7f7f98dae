"""Forks: a new task that copies the steps of another one up to a point and continues from there."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from rota.agents import queries as agents
from rota.agents.access import AgentAccess
from rota.agents.model import AgentVersion
from rota.auth.caller import Caller
from rota.platform.db import AccountReader, Database
from rota.platform.errors import ApiError, Conflict
from rota.platform.idempotency import Idempotency, Outcome
from rota.runs import forked_steps
from rota.runs.fork_schemas import ForkOptions, ForkTask
from rota.runs.forked_steps import Point
from rota.tasks import queries, quotes, review_queries, schemas
from rota.tasks.creation import Fork, NewTask, TaskCreation, run_budget_cents
from rota.tasks.errors import AgentRetired, InvalidField, VersionNotFound
from rota.tasks.model import Task
from rota.tasks.quotes import Quote
from rota.tasks.retrying import has_lost_steps
from rota.tasks.schemas import TaskResponse
from rota.tasks.states import TERMINAL

# The newest versions of an agent that the options list.
MAX_VERSIONS = 100
# The results that a fork copies, as the database stores them. The account is locked meanwhile.
MAX_COPIED_MIB = 64
_FROM_START = ForkTask.model_validate({"fromStep": 0})


class ClientRunsTask(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Your client runs this task, so Rota has no steps to continue from. Create a new task "
            "instead."
        )


class StepNotFound(InvalidField):
    def __init__(self, step: int, last: int) -> None:
        super().__init__(
            "fromStep",
            f"The current run of the task has no step {step}. Its last step is {last}. Send a step "
            "that it has, or 0 to fork from the start.",
        )


class StepUnfinished(Conflict):
    def __init__(self, step: int, *, ended: bool) -> None:
        super().__init__(
            f"Step {step} did not finish before the task ended. Fork from step {step - 1}."
            if ended
            else f"Step {step} has not finished: one of its calls is in progress or waiting for a "
            f"person. Fork from step {step - 1}, or wait until the step has finished."
        )


class NothingFollows(Conflict):
    def __init__(self, step: int) -> None:
        super().__init__(
            f"Step {step} is the final answer of the run, so there is nothing to continue. Fork "
            f"from step {step - 1} to get another answer."
        )


class StepsToCopyDeleted(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The steps of the task were deleted by the account's retention policy. Fork from step "
            "0 to start with the same input."
        )


class StepsTooLarge(Conflict):
    def __init__(self, step: int) -> None:
        super().__init__(
            f"The results of the steps up to {step} are larger than {MAX_COPIED_MIB} MiB, the most "
            "that a fork can copy. Fork from an earlier step."
        )


class ModelUnknown(InvalidField):
    def __init__(self, name: str, names: Sequence[str]) -> None:
        known = (
            f"Use one of: {', '.join(names)}." if names else "This service offers no other models."
        )
        super().__init__("model", f"The model {name!r} is not configured. {known}")


class Forks:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        creation: TaskCreation,
        models: Sequence[str],
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._creation = creation
        # The names of the configured models.
        self._models = models

    async def options(self, caller: Caller, task_id: UUID | None) -> ForkOptions:
        """How the task can be forked. It asks the code that a fork asks, so the two agree."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            task = await queries.get(tx, task_id)
            current = await agents.find(tx, task.agent) if task.agent else None
            # Without its model, which may no longer be configured, and with the current version,
            # because the tier may lock its own. The fork can use others.
            version = current.version if current else task.agent_version
            asked = replace(task, model=None, agent_version=version)
            try:
                await self._new_task(tx, asked, _FROM_START, caller.tier)
            except ApiError as refused:
                return ForkOptions(
                    available=False, reason=refused.message, steps=[], versions=[], models=[]
                )
            assert task.agent is not None
            return ForkOptions(
                available=True,
                reason=None,
                steps=(
                    []
                    if await has_lost_steps(tx, task)
                    else _usable(await forked_steps.points(tx, task))
                ),
                versions=await _open_versions(
                    tx, self._creation.agent_access, task.agent, caller.tier, MAX_VERSIONS
                ),
                models=list(self._models),
            )

    async def quote(self, caller: Caller, task_id: UUID | None, body: ForkTask) -> Quote:
        """What the fork can cost and use. Nothing is written, and no key is claimed."""
        await self._creation.bring_allowance_up_to_date(self._db, caller.account_id)
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            original = await queries.get(tx, task_id)
            new = await self._new_task(tx, original, body, caller.tier)
            return await quotes.quote(tx, self._creation, new)

    async def fork(
        self, caller: Caller, task_id: UUID | None, body: ForkTask, key: str | None
    ) -> Outcome:
        async with self._db.write(caller.account_id, caller.user_id) as tx:

            async def work() -> TaskResponse:
                # Locked, so that its steps cannot change until they are copied.
                original = await queries.get_for_change(tx, task_id)
                new = await self._new_task(tx, original, body, caller.tier)
                task = await self._creation.create(tx, new, caller.tier)
                await forked_steps.copy(tx, original, task.id, body.from_step)
                return TaskResponse(task=schemas.Task.of(task))

            operation = f"POST /api/tasks/{task_id}/fork"
            return await self._idempotency.once(tx, key, (operation, body), 201, work)

    async def _new_task(
        self, tx: AccountReader, original: Task, body: ForkTask, tier: str
    ) -> NewTask:
        """The fork of a task. Raises if the task cannot be forked like this."""
        if not original.hosted:
            raise ClientRunsTask
        model = body.model or original.model
        if model is not None and model not in self._models:
            raise ModelUnknown(model, self._models)
        version = body.agent_version or original.agent_version
        assert version is not None
        agent = await _find_version(tx, self._creation.agent_access, original, version, tier)
        if body.from_step > 0:
            if await has_lost_steps(tx, original):
                raise StepsToCopyDeleted
            points = await forked_steps.points(tx, original)
            _check_point(points, body.from_step, ended=original.status in TERMINAL)
        limit_cents = original.budget_limit_cents
        # Its client may have asked for the gate, so it is not only in the agent's policy.
        gated = await review_queries.has_run_gate(tx, original.id)
        return NewTask(
            name=original.name,
            agent=replace(agent, model=model or agent.model),
            status="WAITING_APPROVAL" if gated else "PENDING",
            project_id=original.project_id,
            priority=original.priority,
            description=original.description,
            input=original.input,
            output_schema=original.output_schema if original.own_output_schema else None,
            budget_cents=run_budget_cents(agent, limit_cents) if limit_cents else None,
            fork=Fork(original, body.from_step, model),
        )


async def _find_version(
    tx: AccountReader, access: AgentAccess, task: Task, version: int, tier: str
) -> AgentVersion:
    """A version of the agent of a hosted task, for a fork of the task.

    The tier must include that version, and also the agent as it is now.
    """
    assert task.agent is not None
    current = await agents.find(tx, task.agent)
    if current is None:
        raise AgentRetired(task.agent)
    access.check(current, tier)
    agent = await agents.find_version(tx, task.agent, version)
    if agent is None:
        raise VersionNotFound(task.agent, version, current.version)
    access.check(agent, tier)
    return agent


async def _open_versions(
    tx: AccountReader, access: AgentAccess, name: str, tier: str, limit: int
) -> list[int]:
    """The newest versions of an agent that an account of this tier can use, newest first."""
    return await agents.version_numbers(tx, name, access.open_levels(tier), limit)


def _check_point(points: list[Point], step: int, *, ended: bool) -> None:
    """Refuses a step that a fork cannot continue from."""
    last = points[-1].step if points else 0
    if step > last:
        raise StepNotFound(step, last)
    unfinished = next((point.step for point in points if not point.finished), None)
    if unfinished is not None and unfinished <= step:
        raise StepUnfinished(unfinished, ended=ended)
    point = next((point for point in points if point.step == step), None)
    if point is None or not point.continues:
        raise NothingFollows(step)
    if not _is_small(point):
        raise StepsTooLarge(step)


def _is_small(point: Point) -> bool:
    return point.stored_bytes <= MAX_COPIED_MIB * 1024 * 1024


def _usable(points: list[Point]) -> list[int]:
    """The steps that a fork can continue from."""
    finished = itertools.takewhile(lambda point: point.finished, points)
    return [point.step for point in finished if point.continues and _is_small(point)]
