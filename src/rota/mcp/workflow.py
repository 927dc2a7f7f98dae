"""The workflow that has due servers looked at. It imports no database and no service."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from rota.mcp.contracts import SWEEP, WORKFLOW, SweepOrder, SweepReport

# The next run of the schedule goes on where this one stops.
MAX_BATCHES = 20


@workflow.defn(name=WORKFLOW)
class CheckServers:
    @workflow.run
    async def run(self, order: SweepOrder) -> None:
        for _ in range(MAX_BATCHES):
            report: SweepReport = await workflow.execute_activity(
                SWEEP,
                order,
                result_type=SweepReport,
                start_to_close_timeout=timedelta(minutes=10),
                heartbeat_timeout=timedelta(minutes=2),
                retry_policy=RetryPolicy(maximum_attempts=3),
            )
            if not report.more:
                return
