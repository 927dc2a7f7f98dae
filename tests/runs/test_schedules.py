"""A worker creates the task of a due schedule and runs it."""

from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, says
from tests.schedules import world as schedules
from tests.service import Person


async def test_a_worker_runs_the_task_of_a_due_schedule(
    runner: Runner, person: Person, scripted: Scripted
) -> None:
    task = {"name": "Planned", "agent": "writer", "input": await scripted.script(says("Done."))}
    schedule = await schedules.create(person, task=task)
    await schedules.make_due(runner.service, schedule)

    async def statuses() -> list[str]:
        details = await schedules.read(person, schedule)
        return [each["status"] for each in details["lastTasks"]]

    await until(statuses, lambda found: found == ["COMPLETED"], deadline_s=60)
    assert (await schedules.read(person, schedule))["schedule"]["lastOutcome"] == "created"
