"""The workflow that starts the checks of due servers. It imports no database and no service."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from rota.mcp.contracts import SWEEP, WORKFLOW, SweepInput, SweepResult

# The next run of the schedule continues with the remaining servers.
MAX_BATCHES = 20


@workflow.defn(name=WORKFLOW)
class CheckServers:
    @workflow.run
    async def run(self, sweep: SweepInput) -> None:
        for _ in range(MAX_BATCHES):
            result: SweepResult = await workflow.execute_activity(
                SWEEP,
                sweep,
                result_type=SweepResult,
                start_to_close_timeout=timedelta(minutes=10),
                heartbeat_timeout=timedelta(minutes=2),
                retry_policy=RetryPolicy(maximum_attempts=3),
            )
            if not result.more:
                return
