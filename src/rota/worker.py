"""The worker: runs tasks, relays the outbox to Temporal, creates the tasks of schedules, sends
webhooks and expires what is overdue."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import structlog
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from rota.composition import Composition
from rota.events import outbox
from rota.events.relay import Relay
from rota.mcp.checks import Checks, ensure_schedule
from rota.mcp.workflow import CheckServers
from rota.platform import clock, collector, database_server
from rota.platform.continuity import BEAT_EVERY_S, OLDER, Continuity
from rota.platform.loops import Loops, is_set
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.platform.temporal import Temporal
from rota.runs import queue_metrics
from rota.runs.agent_loop import AgentLoop
from rota.runs.bounds import Bounds
from rota.runs.call_protection import STOPPING_S
from rota.runs.contracts import SLICES_QUEUE, TASK_QUEUE
from rota.runs.deadlines import Deadlines
from rota.runs.delegation import Delegation
from rota.runs.dispatcher import RunDispatcher
from rota.runs.earlier_activities import Activities
from rota.runs.earlier_workflow import Run
from rota.runs.error_redaction import RedactErrors
from rota.runs.lost_calls import AbandonedCalls
from rota.runs.mcp_tools import McpTools
from rota.runs.model_call import ModelCaller
from rota.runs.models import MAX_CALL_S, Models
from rota.runs.parts import RunParts
from rota.runs.run_context import RunContext
from rota.runs.slices import Slices
from rota.runs.slots import Slots
from rota.runs.tool_call import ToolCaller
from rota.runs.tools import Toolbox, ToolSource
from rota.runs.workflow import TaskRun
from rota.schedules.sweep import Sweep as ScheduleSweep
from rota.tasks import places
from rota.tasks.cancellation import Cancellation
from rota.webhooks.dispatcher import DELETE_EVERY_S
from rota.worker_start import WorkerState, check_models

log = structlog.get_logger()

SWEEP_EVERY_S = 5.0
# How long the loops have to end. The relays give back what they have claimed.
END_WITHIN_S = 5.0
COUNT_EVERY_S = 30.0
ADMIT_EVERY_S = 60.0
MEASURE_EVERY_S = 15.0
SERVER_EVERY_S = 60.0
# Found at a time. A sweep takes all that are due.
SWEEP_PAGE = 500
# What the payment processor refuses now, it can accept hours later.
PLAN_ATTEMPTS = 200
# Workflow tasks at the same time. Each takes one thread for a moment.
MAX_WORKFLOW_TASKS = 20
# Workflows kept in memory. The others are replayed from their history when they continue.
CACHED_RUNS = 200
# A worker that is frozen leaves its open polls behind. Temporal gives each of them a slice, which
# is lost until it times out. If Temporal is near, two polls take more slices per second than a
# worker can begin.
SLICE_POLLS = 2


async def run_worker(
    settings: Settings, stop: asyncio.Event, *, sources: Sequence[ToolSource] = ()
) -> None:
    """Runs until `stop` is set, then lets calls in progress finish."""
    restored, loops = asyncio.Event(), Loops(stop)
    async with (
        Composition(settings, for_worker=True) as parts,
        contextlib.AsyncExitStack() as stack,
    ):
        await parts.db.check_relay()
        await parts.check_start()
        state = WorkerState(parts, stop)
        await stack.enter_async_context(state.served())
        slots = Slots(parts.db, parts.wakes, settings.worker_calls)
        dispatcher = RunDispatcher(
            parts.temporal,
            parts.db,
            heartbeat_s=settings.run_heartbeat_s,
            # While the worker does not poll, nothing would take a run that it was given.
            may_skip_queue=lambda: state.polls and not stop.is_set() and slots.may_skip_queue(),
        )
        built = run_parts(parts, sources)
        handlers = {
            **dispatcher.handlers,
            **Cancellation(parts.db).handlers,
            **Deadlines(built.context, built.loop).handlers,
        }
        # A relay that is silent for as long as a dead worker counts as dead, too.
        relay = Relay(parts.db, handlers, parts.wakes, lease_s=settings.run_heartbeat_s)
        # A separate relay, so that a slow payment processor does not delay runs.
        plan_relay = Relay(
            parts.db, parts.plans.handlers, parts.wakes, lease_s=60, max_attempts=PLAN_ATTEMPTS
        )
        lanes = (relay.lane, plan_relay.lane)
        work = {
            "relay": relay.run(),
            "plan_relay": plan_relay.run(),
            "schedules": ScheduleSweep(parts.db, parts.task_creation).run(),
            "reviews": _sweep(lambda: parts.reviews.expire_due(SWEEP_PAGE)),
            "plans": _sweep(lambda: parts.plans.expire_due(SWEEP_PAGE)),
            "outbox": _sweep(lambda: outbox.count_waiting(parts.db, lanes), COUNT_EVERY_S),
            "places": _sweep(lambda: places.admit_all(parts.db), ADMIT_EVERY_S),
            "continuity": _sweep(lambda: _beat(parts.continuity, restored, stop), BEAT_EVERY_S),
            "server": _sweep(lambda: database_server.measure(parts.db), SERVER_EVERY_S),
            "slots": slots.wake_queued(),
            "webhooks": parts.webhook_dispatcher.run(),
            "deliveries": _sweep(parts.webhook_dispatcher.delete_old, DELETE_EVERY_S),
            "data": parts.data_sweep.run(),
            "notifications": parts.notifications.sender(parts.wakes).run(),
        }
        for name, each in work.items():
            loops.start(name, each)
        stack.push_async_callback(loops.end, END_WITHIN_S)
        activities, slices = Activities(built), _slices(parts, built, slots)
        stack.push_async_callback(slices.abandoned.aclose)
        client = await _connected(parts.temporal, stop)
        if client is not None:
            measuring = _sweep(lambda: queue_metrics.measure(client), MEASURE_EVERY_S)
            loops.start("queues", measuring)
            runs, earlier_runs = _temporal_workers(client, parts, slices, activities)
            await ensure_schedule(client, TASK_QUEUE)
            collector.settle()
            async with earlier_runs, runs:
                state.polls = True
                log.info("worker_ready", queue=SLICES_QUEUE)
                await stop.wait()
                if restored.is_set():
                    # What the database does not know of must not be done again.
                    await loops.end(END_WITHIN_S)
                # Both at the same time: neither takes anything new while the other finishes.
                await asyncio.gather(runs.shutdown(), earlier_runs.shutdown())
    if restored.is_set():
        raise StartRefused(OLDER)
    if loops.failed is not None:
        raise RuntimeError(f"The loop {loops.failed} ended. See background_failed in the log.")


def _temporal_workers(
    client: Client, parts: Composition, slices: Slices, activities: Activities
) -> tuple[Worker, Worker]:
    """What takes runs from Temporal: new ones, and those of earlier versions."""
    settings = parts.settings
    checks = Checks(parts.db, parts.tool_client)
    options: dict[str, Any] = {
        "interceptors": [RedactErrors()],
        "max_concurrent_activities": settings.worker_calls,
        # Temporal distributes waiting work fairly between accounts, but not what a worker has
        # already taken. So the worker takes no more than it can do at once.
        "max_concurrent_workflow_tasks": max(2, min(MAX_WORKFLOW_TASKS, settings.worker_calls)),
        "max_cached_workflows": CACHED_RUNS,
        "max_concurrent_activity_task_polls": SLICE_POLLS,
        # Slices always go through the queue, where the accounts take turns.
        "disable_eager_activity_execution": True,
        # The sandbox takes a tenth of the worker's time. The tests replay the histories of runs
        # in it, so they find what it would find.
        "workflow_runner": UnsandboxedWorkflowRunner(),
        # Work that is assigned to a worker that does not respond goes to another one.
        "sticky_queue_schedule_to_start_timeout": timedelta(
            seconds=min(10, settings.run_heartbeat_s)
        ),
        # By default the client sends heartbeats only after 0.8 times the timeout, and on a busy
        # machine a worker that is a little late counts as dead.
        "max_heartbeat_throttle_interval": timedelta(seconds=settings.run_heartbeat_s / 4),
        "graceful_shutdown_timeout": timedelta(seconds=shutdown_grace_s(settings)),
    }
    runs = Worker(
        client,
        task_queue=SLICES_QUEUE,
        workflows=[TaskRun],
        activities=[slices.run, activities.fail],
        **options,
    )
    # Runs that an earlier version started, until the last of them has ended.
    earlier_runs = Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[Run, CheckServers],
        activities=[
            activities.begin,
            activities.advance,
            activities.fail,
            activities.call_model,
            activities.call_tool,
            checks.sweep,
        ],
        **options,
    )
    return runs, earlier_runs


def shutdown_grace_s(settings: Settings) -> float:
    """By default a call in progress can finish, however long it takes."""
    if settings.shutdown_grace_s is not None:
        return settings.shutdown_grace_s
    return max(MAX_CALL_S, settings.mcp_call_s) + STOPPING_S


def _slices(parts: Composition, built: RunParts, slots: Slots) -> Slices:
    settings = parts.settings
    return Slices(
        built,
        parts.fanout,
        # As many as a worker's slots.
        AbandonedCalls(settings.worker_calls),
        slots,
        seconds=settings.slice_seconds,
        max_steps=settings.slice_steps,
    )


def run_parts(parts: Composition, sources: Sequence[ToolSource] = ()) -> RunParts:
    settings = parts.settings
    context, loop = RunContext(parts.db), AgentLoop(gate_time=parts.gate_time)
    toolbox = Toolbox([*sources, McpTools(parts.db, parts.tool_client)])
    models = Models(settings.models, settings.model_url)
    check_models(settings, models)
    model_caller = ModelCaller(
        context,
        models,
        toolbox,
        parts.schema_checks,
        loop,
        Bounds(settings.run_max_tokens, timedelta(hours=settings.run_max_hours)),
        parts.live_texts,
        parts.allowance_of,
    )
    tool_caller = ToolCaller(context, toolbox, loop, Delegation(parts.task_creation))
    return RunParts(context, loop, model_caller, tool_caller)


async def _sweep(work: Callable[[], Awaitable[object]], every_s: float = SWEEP_EVERY_S) -> None:
    """Does something periodically, not at the same moment as other workers."""
    while True:
        try:
            await work()
        except Exception as error:
            log.exception("sweep_failed", error=repr(error))
        await asyncio.sleep(clock.about(every_s))


async def _beat(continuity: Continuity, restored: asyncio.Event, stop: asyncio.Event) -> None:
    """Stops the worker if the database was restored."""
    if not await continuity.beat():
        restored.set()
        stop.set()


async def _connected(temporal: Temporal, stop: asyncio.Event) -> Client | None:
    """Connects to Temporal, as soon as it is available. None if `stop` is set before that."""
    while True:
        try:
            await temporal.check_namespace()
            return await temporal.connect()
        except (RuntimeError, RPCError) as error:
            log.warning("temporal_unavailable", error=str(error))
        if await is_set(stop, within_s=1):
            return None
