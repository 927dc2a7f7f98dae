"""Builds the worker from settings: it carries out runs and relays instructions."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import structlog
from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from rota.composition import Composition
from rota.events.outbox import Relay
from rota.mcp.checks import Checks, ensure_schedule
from rota.mcp.workflow import CheckServers
from rota.platform.settings import Settings
from rota.platform.temporal import Temporal
from rota.runs.activities import Activities
from rota.runs.agent_loop import AgentLoop
from rota.runs.contracts import TASK_QUEUE
from rota.runs.delegation import Delegation
from rota.runs.dispatcher import RunDispatcher
from rota.runs.error_redaction import RedactErrors
from rota.runs.mcp_tools import McpTools
from rota.runs.model_call import Bounds, ModelCaller
from rota.runs.models import Models
from rota.runs.run_context import RunContext
from rota.runs.tool_call import ToolCaller
from rota.runs.tools import Toolbox, ToolSource
from rota.runs.workflow import Run

log = structlog.get_logger()

# Loops that take from the outbox; each waits for Temporal with some instructions in hand.
RELAYS = 4
SWEEP_EVERY_S = 5.0
# Runs that are decided on at the same time; each is a moment of one thread.
MOVES_AT_ONCE = 20
# Runs kept ready in memory. Any other is read again from the engine when it goes on.
CACHED_RUNS = 200


async def run_worker(
    settings: Settings, stop: asyncio.Event, *, sources: Sequence[ToolSource] = ()
) -> None:
    """Works until `stop` is set, then lets calls in progress finish."""
    async with Composition(settings) as parts, contextlib.AsyncExitStack() as stack:
        dispatcher = RunDispatcher(parts.temporal, parts.db, heartbeat_s=settings.run_heartbeat_s)
        relay = Relay(parts.db, dispatcher.handlers)
        # A relay of its own: a slow payment processor must not delay runs.
        plan_relay = Relay(parts.db, parts.plans.handlers)
        background = [
            *(asyncio.create_task(relay.run()) for _ in range(RELAYS)),
            asyncio.create_task(plan_relay.run()),
            asyncio.create_task(_sweep(parts.reviews.expire_due)),
            asyncio.create_task(_sweep(parts.plans.expire_due)),
        ]
        stack.callback(lambda: [task.cancel() for task in background])
        activities = run_activities(parts, sources)
        checks = Checks(parts.db, parts.tool_client)
        client = await _connected(parts.temporal, stop)
        if client is None:
            return
        worker = Worker(
            client,
            task_queue=TASK_QUEUE,
            workflows=[Run, CheckServers],
            activities=[
                activities.begin,
                activities.look,
                activities.fail,
                activities.think,
                activities.act,
                checks.sweep,
            ],
            interceptors=[RedactErrors()],
            max_concurrent_activities=settings.worker_calls,
            # What a worker has taken it works on all at once; what waits in the engine is
            # handed out fairly. So it takes no more than it can do.
            max_concurrent_workflow_tasks=max(2, min(MOVES_AT_ONCE, settings.worker_calls)),
            max_cached_workflows=CACHED_RUNS,
            # Reading our own module anew for every run costs more than the run's moves.
            workflow_runner=SandboxedWorkflowRunner(
                restrictions=SandboxRestrictions.default.with_passthrough_modules("rota.runs")
            ),
            # Work that was meant for a worker which is silent goes to another.
            sticky_queue_schedule_to_start_timeout=timedelta(
                seconds=min(10, settings.run_heartbeat_s)
            ),
            graceful_shutdown_timeout=timedelta(seconds=settings.shutdown_grace_s),
        )
        await ensure_schedule(client, TASK_QUEUE)
        log.info("worker ready", queue=TASK_QUEUE)
        async with worker:
            await stop.wait()


def run_activities(parts: Composition, sources: Sequence[ToolSource] = ()) -> Activities:
    settings = parts.settings
    context, loop = RunContext(parts.db), AgentLoop(gate_time=parts.gate_time)
    toolbox = Toolbox([*sources, McpTools(parts.db, parts.tool_client)])
    model_caller = ModelCaller(
        context,
        Models(settings.models, settings.model_url),
        toolbox,
        loop,
        Bounds(settings.run_max_tokens, timedelta(hours=settings.run_max_hours)),
    )
    delegation = Delegation(parts.task_creation)
    tool_caller = ToolCaller(context, toolbox, loop, delegation)
    return Activities(context, loop, model_caller, tool_caller)


async def _sweep(expire_due: Callable[[int], Awaitable[object]]) -> None:
    """Ends what has waited longer than it may: for a person, or for a payment."""
    while True:
        try:
            await expire_due(100)
        except Exception:
            log.exception("sweep stumbled")
        await asyncio.sleep(SWEEP_EVERY_S)


async def _connected(temporal: Temporal, stop: asyncio.Event) -> Client | None:
    """Temporal's client, as soon as it answers; None when told to stop before that."""
    while not stop.is_set():
        try:
            return await temporal.connect()
        except RuntimeError as error:
            log.warning("waiting for Temporal", reason=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await stop.wait()
    return None
