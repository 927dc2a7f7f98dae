"""Looks after every account's servers: a schedule starts a small workflow, which sweeps.

The workflow holds nothing; which servers are due is read from the database, and
each is taken by one worker only.
"""

import asyncio
from datetime import timedelta

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
)

from rota.mcp import queries
from rota.mcp.client import ToolClient
from rota.mcp.contracts import SWEEP, WORKFLOW, SweepOrder, SweepReport
from rota.platform.db import Database

log = structlog.get_logger()

SCHEDULE_ID = "check-tool-servers"
EVERY = timedelta(minutes=1)
# A server that was taken by a worker which died is due again after this long.
TAKEN_S = 300.0
BATCH = 50
AT_ONCE = 10


class Checks:
    def __init__(self, db: Database, calling: ToolClient) -> None:
        self._db = db
        self._calling = calling

    @activity.defn(name=SWEEP)
    async def sweep(self, order: SweepOrder) -> SweepReport:
        """Looks at a batch of the servers that are due."""
        async with self._db.relay() as connection:
            due = await queries.take_due(connection, order.batch, TAKEN_S)
        slots = asyncio.Semaphore(AT_ONCE)

        async def look(place: int) -> None:
            account_id, server_id = due[place]
            async with slots:
                async with self._db.read(account_id) as tx:
                    server = await queries.find(tx, server_id)
                if server is not None:
                    await self._calling.look(server)
                activity.heartbeat()

        outcomes = await asyncio.gather(
            *(look(place) for place in range(len(due))), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                log.warning("a tool server could not be checked", reason=repr(outcome))
        return SweepReport(len(due), more=len(due) == order.batch)


async def ensure_schedule(client: Client, task_queue: str) -> None:
    """Makes the schedule, unless another worker has."""
    action = ScheduleActionStartWorkflow(
        WORKFLOW, SweepOrder(BATCH), id=SCHEDULE_ID, task_queue=task_queue
    )
    schedule = Schedule(
        action=action,
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
    )
    try:
        await client.create_schedule(SCHEDULE_ID, schedule)
    except ScheduleAlreadyRunningError:
        log.debug("the schedule is there already", schedule=SCHEDULE_ID)
