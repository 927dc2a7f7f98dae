"""A run as an incompatible change would make it: it looks before it begins."""

from datetime import timedelta

from temporalio import workflow

from rota.runs.orders import Next, RunOrder


@workflow.defn(name="run")
class ChangedRun:
    @workflow.signal
    def nudge(self) -> None:
        pass

    @workflow.run
    async def run(self, order: RunOrder) -> None:
        await workflow.execute_activity(
            "look", order, result_type=Next, start_to_close_timeout=timedelta(seconds=30)
        )
