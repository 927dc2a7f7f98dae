"""Checks the tool servers of all accounts.

A schedule starts a small workflow every minute. The database stores which servers are due, and
one worker claims each of them.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import structlog
from temporalio import activity
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
)

from rota.mcp import due as due_servers
from rota.mcp import queries
from rota.mcp.client import ToolClient
from rota.mcp.contracts import SWEEP, WORKFLOW, SweepInput, SweepResult
from rota.platform.db import Database
from rota.platform.shares import Shares

log = structlog.get_logger()

SCHEDULE_ID = "check-tool-servers"
INTERVAL = timedelta(minutes=1)
# If a worker stops before it has checked a server, the server is due again after this time.
CLAIM_S = 300.0
HEARTBEAT_EVERY_S = 20.0
BATCH_SIZE = 50
# At the same time, and of one account.
MAX_CONCURRENT = 10
MAX_CONCURRENT_OF_ACCOUNT = 2
# In one batch, so that the slow servers of an account do not make a batch long.
MAX_OF_ACCOUNT = 4


class Checks:
    def __init__(self, db: Database, tool_client: ToolClient) -> None:
        self._db = db
        self._tool_client = tool_client
        self._places = Shares(
            "server_checks",
            "Too many tool servers are checked at the moment.",
            total=MAX_CONCURRENT,
            per_account=MAX_CONCURRENT_OF_ACCOUNT,
            waiting=BATCH_SIZE,
            wait_s=CLAIM_S,
        )

    @activity.defn(name=SWEEP)
    async def sweep(self, sweep: SweepInput) -> SweepResult:
        """Checks one batch of the servers that are due."""
        async with self._db.relay() as connection:
            due, more = await due_servers.claim(connection, sweep.batch, MAX_OF_ACCOUNT, CLAIM_S)

        async def check(account_id: UUID, server_id: UUID) -> None:
            async with self._places.place(account_id):
                async with self._db.read(account_id) as tx:
                    server = await queries.find(tx, server_id)
                if server is not None:
                    await self._tool_client.refresh(server)

        beating = asyncio.create_task(_heartbeats())
        try:
            outcomes = await asyncio.gather(
                *[check(account_id, server_id) for account_id, server_id in due],
                return_exceptions=True,
            )
        finally:
            beating.cancel()
        for (_, server_id), outcome in zip(due, outcomes, strict=True):
            if isinstance(outcome, Exception):
                log.warning(
                    "tool_server_check_failed", server_id=str(server_id), error=repr(outcome)
                )
        return SweepResult(len(due), more)


async def _heartbeats() -> None:
    """A check of a slow server can take longer than a heartbeat may."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(HEARTBEAT_EVERY_S)


async def ensure_schedule(client: Client, task_queue: str) -> None:
    """Creates the schedule, or brings it up to date: its input is encrypted with a key that an
    operator may remove one day."""
    action = ScheduleActionStartWorkflow(
        WORKFLOW, SweepInput(BATCH_SIZE), id=SCHEDULE_ID, task_queue=task_queue
    )
    schedule = Schedule(
        action=action,
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=INTERVAL)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
    )
    try:
        await client.create_schedule(SCHEDULE_ID, schedule)
    except ScheduleAlreadyRunningError:
        # An operator may have paused it.
        await client.get_schedule_handle(SCHEDULE_ID).update(
            lambda found: ScheduleUpdate(replace(schedule, state=found.description.schedule.state))
        )
