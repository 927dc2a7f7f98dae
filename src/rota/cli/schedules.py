"""`rota schedules …`: the same task again and again."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.output import page_size, print_fields, print_json, print_list, print_table, print_text
from rota.cli.session import Session, client_command, read_text
from rota.cli.text import moment

if TYPE_CHECKING:
    from rota_sdk.models import Schedule

commands = typer.Typer(no_args_is_help=True, help="Create tasks at regular times.")

ScheduleId = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The ID of the schedule.")]


class Overlap(StrEnum):
    SKIP = "skip"
    QUEUE = "queue"


@client_command(commands, "list")
def list_schedules(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 100,
) -> None:
    """List the schedules."""
    pages = session.client.schedules.list(page_size=page_size(limit))
    columns = ("ID", "Name", "Cron", "Time zone", "Agent", "Next", "Last outcome")
    empty = "There are no schedules."
    print_list("schedules", pages, limit, columns, _row, empty, as_json=session.as_json)


def _row(schedule: "Schedule") -> tuple[object, ...]:
    return (
        schedule.id,
        schedule.name,
        schedule.cron,
        schedule.time_zone,
        schedule.task.agent,
        "paused" if schedule.paused else moment(schedule.next_at),
        schedule.last_outcome,
    )


@client_command(commands)
def show(session: Session, schedule: ScheduleId) -> None:
    """Show a schedule, its next times and its last tasks."""
    found = session.client.schedules.get(schedule)
    if session.as_json:
        print_json(found)
        return
    about = found.schedule
    error = about.last_error
    print_fields(
        [
            ("ID", about.id),
            ("Name", about.name),
            ("Cron", f"{about.cron} ({about.time_zone})"),
            ("Task", about.task.name),
            ("Agent", about.task.agent),
            ("Input", about.task.input),
            ("If one still runs", about.overlap),
            ("Paused", "yes" if about.paused else None),
            ("Next times", "\n".join(map(moment, found.next_times))),
            ("Last error", f"{error.code}: {error.message}" if error else None),
        ]
    )
    print_text("")
    rows = [(task.id, task.status, moment(task.created_at)) for task in found.last_tasks]
    print_table(("Task", "Status", "Created"), rows, "It has created no task yet.")


@client_command(commands)
def create(
    session: Session,
    name: Annotated[str, typer.Argument(help="The name of the schedule and of its tasks.")],
    cron: Annotated[
        str, typer.Option(help="Minute, hour, day, month and day of the week: '0 9 * * MON'.")
    ],
    time_zone: Annotated[str, typer.Option(help="Such as Europe/Berlin.")] = "UTC",
    agent: Annotated[str | None, typer.Option(help="The agent that runs the tasks.")] = None,
    text: Annotated[
        str | None,
        typer.Option("--input", help="The input of the tasks: a text, @FILE or -."),
    ] = None,
    budget_cents: Annotated[
        int | None, typer.Option(min=1, help="The most that each task may cost, in cents.")
    ] = None,
    overlap: Annotated[
        Overlap, typer.Option(help="What to do if the last task has not ended.")
    ] = Overlap.SKIP,
    paused: Annotated[bool, typer.Option("--paused", help="Do not start it yet.")] = False,
) -> None:
    """Create a schedule.

    Example: rota schedules create "Weekly report" --cron "0 9 * * MON" --agent data-analyst
    """
    task = {"name": name, "agent": agent, "input": read_text(text), "budget_cents": budget_cents}
    created = session.client.schedules.create(
        name=name,
        cron=cron,
        time_zone=time_zone,
        task={field: value for field, value in task.items() if value is not None},
        overlap=overlap.value,
        paused=paused,
    )
    if session.as_json:
        print_json({"schedule": created})
    else:
        print_text(created.id)


@client_command(commands)
def pause(session: Session, schedule: ScheduleId) -> None:
    """Create no more tasks until the schedule is resumed."""
    _changed(session, session.client.schedules.update(schedule, paused=True))


@client_command(commands)
def resume(session: Session, schedule: ScheduleId) -> None:
    """Resume a paused schedule. Times that passed in the meantime are skipped."""
    _changed(session, session.client.schedules.update(schedule, paused=False))


def _changed(session: Session, schedule: "Schedule") -> None:
    if session.as_json:
        print_json({"schedule": schedule})
    elif schedule.paused:
        print_text(f"{schedule.name} is paused.")
    else:
        print_text(f"{schedule.name} runs next at {moment(schedule.next_at)}.")


@client_command(commands)
def run(session: Session, schedule: ScheduleId) -> None:
    """Create a task of the schedule now."""
    task = session.client.schedules.run(schedule)
    if session.as_json:
        print_json({"task": task})
    else:
        print_text(task.id)


@client_command(commands)
def delete(session: Session, schedule: ScheduleId) -> None:
    """Delete a schedule. Its tasks stay."""
    session.client.schedules.delete(schedule)
    if session.as_json:
        print_json({"deleted": True, "id": schedule})
    else:
        print_text(f"{schedule} is deleted.")
