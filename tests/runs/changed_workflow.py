"""The workflow of a run with an incompatible change: it calls `look` before `begin`."""

from datetime import timedelta

from temporalio import workflow

from rota.runs.contracts import NextStep, RunInput


@workflow.defn(name="run")
class ChangedRun:
    @workflow.signal(name="nudge")
    def wake(self) -> None:
        pass

    @workflow.run
    async def run(self, run_input: RunInput) -> None:
        await workflow.execute_activity(
            "look", run_input, result_type=NextStep, start_to_close_timeout=timedelta(seconds=30)
        )
