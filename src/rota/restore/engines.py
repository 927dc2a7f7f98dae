"""Makes Temporal and Redis agree with a restored database: both may know what it does not."""

import asyncio
from itertools import islice

from redis.asyncio import Redis
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

# Runs that are ended at the same time.
AT_ONCE = 16
REASON = "The database was restored. The run starts again from its rows, if its task exists."
# Live texts of runs that are repeated, limits, and tokens that wake workers.
STALE = ("live:*", "limits:*", "wake:*")
_PAGE = 500


async def end_runs(client: Client) -> int:
    """Ends all runs in Temporal. Their state is newer than the database. Returns how many."""
    open_runs = [
        each.id
        async for each in client.list_workflows('ExecutionStatus = "Running"')
        if each.id.startswith("run/")
    ]
    left = iter(open_runs)
    while page := list(islice(left, AT_ONCE)):
        await asyncio.gather(*[_end(client, workflow_id) for workflow_id in page])
    return len(open_runs)


async def _end(client: Client, workflow_id: str) -> None:
    try:
        await client.get_workflow_handle(workflow_id).terminate(reason=REASON)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


async def forget(redis: Redis) -> int:
    """Deletes what Redis has about a later state. Returns how many keys."""
    gone = 0
    for pattern in STALE:
        keys: list[bytes] = []
        async for key in redis.scan_iter(match=pattern, count=_PAGE):
            keys.append(key)
            if len(keys) == _PAGE:
                gone += await redis.delete(*keys)
                keys.clear()
        if keys:
            gone += await redis.delete(*keys)
    return gone
