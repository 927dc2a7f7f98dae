"""A tool call: made when it is allowed, and never repeated if that could do harm."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from opentelemetry.trace import SpanKind
from prometheus_client import Counter
from temporalio.exceptions import ApplicationError

from rota.agents.model import AgentVersion
from rota.credits.model import RunId
from rota.events import journal
from rota.platform import clock, tracing
from rota.platform.db import AccountTransaction
from rota.runs import call_texts, standing_rules, step_events, steps, stored_results, tool_steps
from rota.runs.agent_loop import AgentLoop
from rota.runs.bounds import is_past_deadline
from rota.runs.call_protection import retry_database
from rota.runs.contracts import CALL_FINISHED, TOOL_FAILED, CallInput, NextStep, RunInput
from rota.runs.delegation import Delegation
from rota.runs.run_context import FencedOut, RunContext, ids_of, may_make_calls
from rota.runs.steps import Step
from rota.runs.tools import (
    ASK_PERSON,
    DELEGATE,
    READ_RESULT,
    OutcomeUnknown,
    Tool,
    Toolbox,
    ToolChanged,
    ToolSource,
    ToolUnavailable,
    asks_person,
    needs_approval,
)
from rota.runs.transcript import storable
from rota.tasks import places, queries, review_queries, withdrawal
from rota.tasks.model import Task

log = structlog.get_logger()

CALLS = Counter("rota_run_tool_calls_total", "Tool calls of runs, by outcome.", ["outcome"])
for _outcome in ("ok", "failed", "unavailable", "unknown"):
    CALLS.labels(_outcome)

# A worker that was silent for longer than this part of the heartbeat timeout looks again before it
# sends a call. Temporal can miss the heartbeats of almost the whole timeout before that.
MAX_PAUSE = 0.1

# What the start of a call can lead to: a gate is open, or the rows say what is next.
WAITS_FOR_PERSON = NextStep("wait")
LOOK_AGAIN = NextStep("act")


@dataclass(frozen=True, slots=True)
class Started:
    """A call that is marked as started: what to call, and with what."""

    row: Step
    tool: Tool
    source: ToolSource
    arguments: dict[str, Any]
    # What identifies the call for its tool server.
    key: str
    started_at: datetime
    # When this process began to mark it, on its monotonic clock.
    checked_s: float

    def is_current(self, row: Step) -> bool:
        """Whether this attempt still owns the call. A slow one may have been replaced."""
        return row.state == "started" and row.started_at == self.started_at


class ToolCaller:
    def __init__(
        self, context: RunContext, toolbox: Toolbox, loop: AgentLoop, delegation: Delegation
    ) -> None:
        self._context = context
        self._toolbox = toolbox
        self._loop = loop
        self._delegation = delegation

    async def start(
        self, run_input: RunInput, step: int, calls: Sequence[int]
    ) -> dict[int, "Started | NextStep"]:
        """Like `start_in`, in a transaction of its own."""
        async with self._context.locked(run_input) as (tx, task):
            if task is None or task.status != "RUNNING" or is_past_deadline(task):
                return {}
            if await places.is_queued(tx, task):
                return {}
            agent = await self._context.agent(tx, task)
            rows = await steps.calls_of(tx, task.id, task.run, step)
            # With calls that wait for a subtask, so that the step does not seem finished.
            wanted = [row for row in rows if row.call in calls or row.state == "delegated"]
            return await self.start_in(tx, task, agent, wanted)

    async def start_in(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion,
        rows: Sequence[Step],
        *,
        are_new: bool = False,
    ) -> dict[int, "Started | NextStep"]:
        """Marks these calls of a step as started, and creates the subtasks that they delegate.

        A call for which a person has to decide again stops the run, so those after it are left out.
        `are_new` if this transaction planned the calls.
        """
        found: dict[int, Started | NextStep] = {}
        ready: list[Started] = []
        for row in rows:
            if row.state == "finished":
                found[row.call] = CALL_FINISHED
                continue
            row = await _without_lost_approval(tx, task, row)
            outcome = (
                await self._built_in(tx, task, agent, row)
                if _is_built_in(row)
                else await self._check(tx, task, agent, row)
            )
            if isinstance(outcome, Started):
                ready.append(outcome)
                continue
            found[row.call] = outcome
            if outcome == WAITS_FOR_PERSON:
                break
        return found | await _mark_started(tx, task, ready, are_new=are_new)

    async def _check(
        self, tx: AccountTransaction, task: Task, agent: AgentVersion, row: Step
    ) -> "Started | NextStep":
        """What to call, and with what, if it is still the call that was planned or approved."""
        if row.state not in ("planned", "started", "gated"):
            return LOOK_AGAIN
        if row.state == "gated" and await self._was_asked(tx, task, row):
            return LOOK_AGAIN
        if row.state == "gated" and asks_person(row):
            return await self._loop.reopen_gate(tx, task, agent, row, ASK_PERSON, None)
        checked_s = time.monotonic()
        server_id = row.sealed_server_id
        found = await self._toolbox.current(tx, agent, server_id, row.name) if server_id else None
        interrupted = row.state == "started" and not row.read_only
        if found is None:
            why = call_texts.GONE if row.sealed else call_texts.EARLIER_VERSION
            if interrupted or row.maybe_made:
                why = call_texts.UNKNOWN_AND_GONE
            await tool_steps.finish(tx, task.id, row, why, "failed")
            return CALL_FINISHED
        tool, source = found
        arguments = row.sealed_arguments
        if row.state == "gated":
            made = row.may_have_effect
            why = call_texts.UNKNOWN if made else call_texts.UNDECIDED
            return await self._loop.reopen_gate(tx, task, agent, row, tool, why, maybe_made=made)
        if interrupted:
            return await self._loop.reopen_gate(
                tx, task, agent, row, tool, call_texts.UNKNOWN, maybe_made=True
            )
        if tool.changed is not None:
            return await self._loop.reopen_gate(tx, task, agent, row, tool, tool.changed)
        if tool.seal(arguments) != row.sealed:
            return await self._loop.reopen_gate(tx, task, agent, row, tool, call_texts.CHANGED)
        if needs_approval(agent, tool) and not row.is_approved:
            approved = await standing_rules.use(tx, task, agent, row, tool)
            if approved is None:
                reason = call_texts.AGAIN if row.approved_by_rule else None
                return await self._loop.reopen_gate(tx, task, agent, row, tool, reason)
            row = approved
        key = await tool_steps.idempotency_key(tx, task.id, row)
        return Started(row, tool, source, arguments, key, row.planned_at, checked_s)

    async def _was_asked(self, tx: AccountTransaction, task: Task, row: Step) -> bool:
        """Whether a review of this run is about the call. Else it was copied from an earlier run,
        which ended before a person decided."""
        ids = [row.item_id]
        return bool(await review_queries.newest_of_items(tx, task.id, ids, run=task.run))

    async def make(
        self, call_input: CallInput, call: "Started", stored_characters: int = 0
    ) -> NextStep:
        """Makes a call that is marked as started, and stores its result.

        `stored_characters` is the size of the results that the run has already stored.
        """
        account_id, task_id = ids_of(call_input.run)
        row, tool = call.row, call.tool
        started = clock.now()
        sent = False

        async def before_send() -> None:
            nonlocal sent
            await self._check_not_late(call_input, call)
            sent = True

        async def reset() -> None:
            CALLS.labels("unavailable").inc()
            # The call did not reach the tool, so it can be repeated even if the tool writes.
            await retry_database(lambda: self._reset(call_input, call))

        try:
            with tracing.span(f"tool {tool.full_name}", kind=SpanKind.CLIENT):
                result = await call.source.call(
                    account_id, tool, call.arguments, call.key, before_send
                )
        except FencedOut:
            # The tool was not called.
            await retry_database(lambda: self._undo_after_failure(call_input, call))
            raise
        except ToolUnavailable:
            await reset()
            raise
        except ToolChanged as changed:
            # The tool was not called.
            tool_now = changed.now
            reason = tool_now.changed or call_texts.CHANGED
            return await retry_database(
                lambda: self._ask_again(call_input, call, tool_now, reason, maybe_made=False)
            )
        except Exception as error:
            log.warning("tool_call_failed", tool=tool.full_name, sent=sent, error=repr(error))
            if not sent:
                # Such as a database that was down before the call.
                await reset()
                raise ToolUnavailable(repr(error)) from None
            CALLS.labels("unknown").inc()
            if row.read_only:
                raise ApplicationError("A tool call failed.", type=TOOL_FAILED) from None
            why = call_texts.UNKNOWN
            if isinstance(error, OutcomeUnknown):
                why = call_texts.unknown_after(storable(error.message))
            return await retry_database(
                lambda: self._ask_again(call_input, call, tool, why, maybe_made=True)
            )
        steps.DURATION_SECONDS.labels("tool").observe((clock.now() - started).total_seconds())
        outcome = "failed" if result.is_error else "ok"
        CALLS.labels(outcome).inc()

        # Before the account is locked, because it can be long.
        content = storable(stored_results.limited(result.content, stored_characters))

        async def finish() -> NextStep:
            async with self._context.db.write(account_id) as tx:
                # Locked, so that another slice sees either the result or a call in progress.
                await journal.lock_account(tx)
                was_last = await tool_steps.finish(tx, task_id, row, content, outcome)
                if was_last and await queries.is_running(tx, task_id, row.run):
                    run_id = RunId(task_id, row.run)
                    await step_events.model_call_starts(tx, run_id, row.step + 1, is_new=True)
            return CALL_FINISHED

        return await retry_database(finish)

    async def _check_not_late(self, call_input: CallInput, call: "Started") -> None:
        """Looks again before the call is sent, if it writes or this process was paused meanwhile.

        A person may have cancelled the task, or another worker may have taken over the run.
        """
        run_input = call_input.run
        account_id, task_id = ids_of(run_input)
        wants_look = not call.row.read_only
        while wants_look or time.monotonic() - call.checked_s > MAX_PAUSE * run_input.heartbeat_s:
            wants_look, looked_s = False, time.monotonic()

            async def look() -> Step | None:
                async with self._context.db.read(account_id) as tx:
                    if not await may_make_calls(tx, run_input):
                        return None
                    place = (run_input.run, call_input.step, call_input.call)
                    return await steps.one(tx, task_id, *place)

            row = await retry_database(look)
            if row is None or not call.is_current(row):
                raise FencedOut
            call = replace(call, checked_s=looked_s)

    async def count_failure(self, call_input: CallInput) -> int:
        """Counts a failed attempt of a call that can be repeated. Returns how many have failed."""
        async with self._context.locked(call_input.run) as (tx, task):
            assert task is not None
            row = await _row(tx, task, call_input)
            if row.state not in ("planned", "started"):
                raise FencedOut
            return await tool_steps.count_failure(tx, task.id, row)

    async def _reset(self, call_input: CallInput, call: "Started") -> None:
        """Lets the call be made again, unless another attempt has taken it over."""
        async with self._context.locked(call_input.run) as (tx, task):
            if task is not None and call.is_current(row := await _row(tx, task, call_input)):
                await tool_steps.undo_start(tx, task.id, row)

    async def _undo_after_failure(self, call_input: CallInput, call: "Started") -> None:
        """If the run has failed, a retry can start the call again, because it was not sent."""
        run_input = call_input.run
        account_id, task_id = ids_of(run_input)
        async with self._context.db.write(account_id) as tx:
            task = await queries.find_for_change(tx, task_id)
            if task is None or (task.run, task.status) != (run_input.run, "FAILED"):
                return
            if call.is_current(row := await _row(tx, task, call_input)):
                await tool_steps.undo_start(tx, task.id, row)
                tx.record("run.advanced", {"run": run_input.run}, run_input.task_id)

    async def _ask_again(
        self, call_input: CallInput, call: "Started", tool: Tool, reason: str, *, maybe_made: bool
    ) -> NextStep:
        async with self._context.locked(call_input.run) as (tx, task):
            if task is None:
                return NextStep("end")
            row = await _row(tx, task, call_input)
            if not call.is_current(row) or task.status != "RUNNING":
                if call.is_current(row) and not maybe_made:
                    # The gate of another call is open. This one was not sent, and starts after it.
                    await tool_steps.undo_start(tx, task.id, row)
                return await self._loop.advance(tx, task)
            agent = await self._context.agent(tx, task)
            return await self._loop.reopen_gate(
                tx, task, agent, row, tool, reason, maybe_made=maybe_made
            )

    async def _built_in(
        self, tx: AccountTransaction, task: Task, agent: AgentVersion, row: Step
    ) -> NextStep:
        if row.name == READ_RESULT.name:
            await stored_results.read(tx, task, row)
            return LOOK_AGAIN
        if row.state == "gated" and await self._was_asked(tx, task, row):
            return LOOK_AGAIN
        asks = row.state == "planned" and needs_approval(agent, DELEGATE) and not row.is_approved
        if asks or row.state == "gated":
            return await self._loop.reopen_gate(tx, task, agent, row, DELEGATE, None)
        if row.state == "planned":
            await self._delegation.delegate(tx, task, agent, row)
        return LOOK_AGAIN


def _is_built_in(row: Step) -> bool:
    return row.name in (DELEGATE.name, READ_RESULT.name) and row.server is None


async def _without_lost_approval(tx: AccountTransaction, task: Task, row: Step) -> Step:
    """The call as it was before an approval that no longer counts, so that a gate opens."""
    if row.state != "planned" or not row.copied or not row.is_approved:
        return row
    first = await withdrawal.withdrawn_call(tx, task.id, row.item_ids)
    return row if first is None else replace(row, state="gated", sealed=first, approved_digest=None)


async def _mark_started(
    tx: AccountTransaction, task: Task, ready: Sequence["Started"], *, are_new: bool = False
) -> dict[int, "Started | NextStep"]:
    if not ready:
        return {}
    rows = [call.row for call in ready]
    await step_events.tool_calls_start(tx, task.id, rows, are_new=are_new)
    calls = [row.call for row in rows]
    started_at = await tool_steps.start(tx, task.id, task.run, rows[0].step, calls)
    return {call.row.call: replace(call, started_at=started_at[call.row.call]) for call in ready}


async def _row(tx: AccountTransaction, task: Task, call_input: CallInput) -> Step:
    row = await steps.one(tx, task.id, task.run, call_input.step, call_input.call)
    assert row is not None
    return row
