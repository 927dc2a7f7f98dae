"""The worker: runs tasks, relays the outbox to Temporal and expires what is overdue."""

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

# Loops that read the outbox. Each waits for Temporal while it handles a batch.
RELAYS = 4
SWEEP_EVERY_S = 5.0
# Workflow tasks at the same time. Each takes one thread for a moment.
MAX_WORKFLOW_TASKS = 20
# Workflows kept in memory. The others are replayed from their history when they continue.
CACHED_RUNS = 200


async def run_worker(
    settings: Settings, stop: asyncio.Event, *, sources: Sequence[ToolSource] = ()
) -> None:
    """Runs until `stop` is set, then lets calls in progress finish."""
    async with Composition(settings) as parts, contextlib.AsyncExitStack() as stack:
        dispatcher = RunDispatcher(parts.temporal, parts.db, heartbeat_s=settings.run_heartbeat_s)
        relay = Relay(parts.db, dispatcher.handlers)
        # A separate relay, so that a slow payment processor does not delay runs.
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
                activities.advance,
                activities.fail,
                activities.call_model,
                activities.call_tool,
                checks.sweep,
            ],
            interceptors=[RedactErrors()],
            max_concurrent_activities=settings.worker_calls,
            # Temporal distributes waiting work fairly between accounts, but not what a worker has
            # already taken. So the worker takes no more than it can do at once.
            max_concurrent_workflow_tasks=max(2, min(MAX_WORKFLOW_TASKS, settings.worker_calls)),
            max_cached_workflows=CACHED_RUNS,
            # Reloading our own modules for every run would cost more than the run itself.
            workflow_runner=SandboxedWorkflowRunner(
                restrictions=SandboxRestrictions.default.with_passthrough_modules("rota.runs")
            ),
            # Work that is assigned to a worker that does not respond goes to another one.
            sticky_queue_schedule_to_start_timeout=timedelta(
                seconds=min(10, settings.run_heartbeat_s)
            ),
            graceful_shutdown_timeout=timedelta(seconds=settings.shutdown_grace_s),
        )
        await ensure_schedule(client, TASK_QUEUE)
        log.info("worker_ready", queue=TASK_QUEUE)
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
    """Periodically expires what has waited too long for a person or a payment."""
    while True:
        try:
            await expire_due(100)
        except Exception as error:
            log.exception("sweep_failed", error=repr(error))
        await asyncio.sleep(SWEEP_EVERY_S)


async def _connected(temporal: Temporal, stop: asyncio.Event) -> Client | None:
    """Connects to Temporal, as soon as it is available. None if `stop` is set before that."""
    while not stop.is_set():
        try:
            return await temporal.connect()
        except RuntimeError as error:
            log.warning("temporal_unavailable", error=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await stop.wait()
    return None
