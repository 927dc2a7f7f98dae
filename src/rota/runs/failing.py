"""The activity that fails a run without progress. Runs of earlier versions have it too."""

import structlog
from temporalio import activity

from rota.runs import steps
from rota.runs.agent_loop import AgentLoop
from rota.runs.contracts import FAIL, FailInput, NextStep, workflow_id
from rota.runs.run_context import RunContext, act_as_agent

log = structlog.get_logger()


class Failing:
    def __init__(self, context: RunContext, loop: AgentLoop) -> None:
        self._context = context
        self._loop = loop

    @activity.defn(name=FAIL)
    async def fail(self, fail_input: FailInput) -> NextStep:
        act_as_agent(fail_input.run)
        async with self._context.locked(fail_input.run) as (tx, task):
            if task is None:
                return NextStep("end")
            if fail_input.finished is not None:
                finished, *_ = await steps.progress(tx, task.id, task.run)
                has_begun = fail_input.at_fence is None or task.fence >= fail_input.at_fence
                if finished > fail_input.finished or not has_begun:
                    # The run goes on, and the workflow has to know from where.
                    return NextStep("think", finished, fence=task.fence)
            if task.status != "PENDING":
                # Decisions are applied first, so that a retry from failure continues from them.
                next_step = await self._loop.advance(tx, task)
                if task.status != "RUNNING" or next_step.kind == "end":
                    return next_step
            if fail_input.finished is not None:
                run = workflow_id(fail_input.run.task_id, fail_input.run.run)
                log.warning("run_without_progress", run=run, fence=task.fence)
            return await self._loop.fail(
                tx, task, fail_input.code, fail_input.message, retryable=fail_input.retryable
            )
