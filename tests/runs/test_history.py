"""What Temporal stores of runs: it can be replayed, is small and contains no text of tasks.

tests/runs/histories has histories of finished runs: those of versions before slices, and in
`slices` those of this version. A change of a workflow that cannot replay them would break runs in
progress. After an intended change that is guarded by workflow.patched, renew the latter with:

    ROTA_RENEW_HISTORIES=1 pytest tests/runs/test_history.py
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowHistory
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker
from temporalio.workflow import NondeterminismError

from rota.dev.components import program
from rota.runs.contracts import CALL_FINISHED, CallInput, FailInput, NextStep, RunInput
from rota.runs.earlier_workflow import Run
from rota.runs.workflow import TaskRun
from tests.runs.changed_workflow import ChangedRun
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person
from tests.sizes import size

HISTORIES = Path(__file__).parent / "histories"
SLICES = HISTORIES / "slices"
STORED = ("answered", "approved", "delegated", "failed", "cancelled")
# Temporal warns about payloads over 256 KB, and of histories over 10,240 events or 10 MB.
MAX_PAYLOAD = 64 * 1024
MAX_EVENTS = 10_240
MAX_HISTORY = 10 * 1024 * 1024

PLANTED = "PLANTED"


def stored() -> Sequence[Any]:
    return [
        pytest.param(folder / f"{name}.json", id=f"{folder.name}-{name}")
        for folder in (HISTORIES, SLICES)
        for name in STORED
    ]


@pytest.mark.parametrize("path", stored())
async def test_runs_of_earlier_versions_replay(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    await Replayer(workflows=[Run, TaskRun]).replay_workflow(history)


async def test_an_incompatible_change_is_detected() -> None:
    path = HISTORIES / "answered.json"
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    with pytest.raises(NondeterminismError):
        await Replayer(workflows=[ChangedRun]).replay_workflow(history)


async def test_new_runs_replay_and_temporal_has_no_text_of_them(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    echo = {"status": 400, "error": {"message": f"You said {PLANTED}-ERROR, which is not allowed."}}
    subtask = await scripted.script(says(f"{PLANTED}-RESULT"))
    delegated = {"agent": "writer", "name": f"{PLANTED}-NAME", "input": f"{PLANTED} {subtask}"}
    scripts = {
        "answered": (
            "writer",
            await scripted.script(
                calls(("desk__lookup", {"ref": f"{PLANTED}-REF"}), text=f"{PLANTED}-COMMENT"),
                says(f"{PLANTED}-ANSWER"),
            ),
        ),
        "approved": (
            "careful",
            await scripted.script(calls(("desk__send", {"ref": PLANTED})), says(PLANTED)),
        ),
        "delegated": (
            "director",
            await scripted.script(calls(("delegate", delegated)), says("Done.")),
        ),
        "failed": (
            "writer",
            await scripted.script(
                calls(("desk__lookup", {"ref": PLANTED}), failures=[{"malformed": PLANTED}]), echo
            ),
        ),
        "cancelled": ("writer", await scripted.script(says(PLANTED, hold=True))),
    }
    await scripted.behave(PLANTED, {"status": 500})
    tasks: dict[str, dict[str, Any]] = {}
    for name, (agent, script) in scripts.items():
        tasks[name] = await runner.begin(
            person, agent, script, name=f"{PLANTED}-NAME", description=f"{PLANTED}-DESCRIPTION"
        )
    await runner.waiting(person, tasks["approved"], "tool")
    await runner.reject(person, tasks["approved"], resume=True, reason=f"{PLANTED}-REASON")
    await until(lambda: scripted.asked(scripts["cancelled"][1]))
    await runner.cancel(person, tasks["cancelled"])
    failed = await runner.until(person, tasks["failed"], "FAILED")
    assert f"{PLANTED}-ERROR" in failed["error"]["message"]
    children = [await runner.child(person, tasks["delegated"], "COMPLETED")]
    for task in [*tasks.values(), *children]:
        await runner.history_ends(task)
        history = await runner.history(task)
        await Replayer(workflows=[TaskRun]).replay_workflow(history)
        for event in history.events:
            written = event.SerializeToString()
            assert PLANTED.encode() not in written
            assert len(written) < MAX_PAYLOAD

    if os.environ.get("ROTA_RENEW_HISTORIES"):
        SLICES.mkdir(exist_ok=True)
        for name, task in tasks.items():
            text = (await runner.history(task)).to_json()
            # The name of the machine does not belong into the repository.
            text = re.sub(r'"identity": ?"[^"]*"', '"identity": "worker"', text)
            (SLICES / f"{name}.json").write_text(text + "\n")


async def test_a_run_of_five_hundred_steps_stays_within_temporals_limits(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    # Every step adds the same amount to the history, so a few steps are enough to compute the
    # total. The full size runs all of them.
    count = size(25, 500)
    turn = calls(("no_such_tool", {}), inputTokens=1, outputTokens=1)
    script = await scripted.script(*[turn] * (count - 1), says("The last."))
    task = await runner.begin(person, "endless", script)
    task = await runner.until(person, task, "COMPLETED", deadline_s=max(60, count))
    assert task["usage"]["steps"] == count
    await runner.history_ends(task)
    history = await runner.history(task)
    sizes = [len(event.SerializeToString()) for event in history.events]
    assert len(sizes) * 500 / count < MAX_EVENTS
    assert sum(sizes) * 500 / count < MAX_HISTORY
    assert max(sizes) < 2048
    steps, total = await runner.timeline(person, task, limit=100, offset=2 * count - 10)
    assert (len(steps), total) == (9, 2 * count - 1)


class FakeActivities:
    """Activities without a database, for a run of this many model calls."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.done: list[int] = []
        self.begun = 0

    @activity.defn
    async def begin(self, _: RunInput) -> NextStep:
        self.begun += 1
        return NextStep("think", len(self.done) + 1)

    @activity.defn(name="look")
    async def advance(self, _: RunInput) -> NextStep:
        return NextStep("think", len(self.done) + 1)

    @activity.defn
    async def fail(self, _: FailInput) -> NextStep:
        return NextStep("end")

    @activity.defn(name="think")
    async def call_model(self, call_input: CallInput) -> NextStep:
        step = call_input.step
        self.done.append(step)
        return NextStep("think", step + 1) if step < self.steps else NextStep("end")

    @activity.defn(name="act")
    async def call_tool(self, _: CallInput) -> NextStep:
        return CALL_FINISHED


async def test_a_very_long_run_continues_in_a_new_history() -> None:
    fake = FakeActivities(40)
    async with (
        await WorkflowEnvironment.start_local(
            dev_server_existing_path=program("temporal"),
            dev_server_log_level="error",
            dev_server_extra_args=[
                "--dynamic-config-value",
                "limit.historyCount.suggestContinueAsNew=60",
            ],
        ) as environment,
        Worker(
            environment.client,
            task_queue="fake-activities",
            workflows=[Run],
            activities=[
                fake.begin,
                fake.advance,
                fake.fail,
                fake.call_model,
                fake.call_tool,
            ],
        ),
    ):
        run_input = RunInput(account_id="acct", task_id="task", run=1)
        handle = await environment.client.start_workflow(
            Run.run, run_input, id="run/task/1", task_queue="fake-activities"
        )
        await handle.result()
        last = await environment.client.get_workflow_handle("run/task/1").describe()
        assert last.run_id != handle.first_execution_run_id
    assert fake.begun >= 3
    assert fake.done == list(range(1, 41))
