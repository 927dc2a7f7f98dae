"""`rota tasks …`."""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.exits import ExitCode
from rota.cli.output import (
    page_size,
    print_fields,
    print_json,
    print_list,
    print_note,
    print_table,
    print_text,
)
from rota.cli.session import Session, client_command, read_json, read_text
from rota.cli.text import dollars, moment

if TYPE_CHECKING:
    from rota_sdk import Task
    from rota_sdk.models import Quote, TimelineStep

commands = typer.Typer(no_args_is_help=True, help="Create tasks, follow them and decide.")

TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The ID of the task (task_…).")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Show what happens until the task ends.")
]
UntilReview = Annotated[
    bool,
    typer.Option(
        "--until-review", help="Stop following when the task waits for a person (exit code 5)."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what it would cost. Nothing is created.")
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(help="Makes the command safe to repeat: with the same key, it takes effect once."),
]


class Status(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING_APPROVAL = "WAITING_APPROVAL"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class From(StrEnum):
    START = "start"
    FAILURE = "failure"


@client_command(commands)
def create(
    session: Session,
    name: Annotated[str, typer.Argument(help="The name of the task.")],
    agent: Annotated[
        str | None,
        typer.Option(help="The agent that runs it. Without one, your own program does the work."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--input", help="The input: a text, @FILE, or - for standard input."),
    ] = None,
    description: Annotated[
        str | None, typer.Option(help="A description: a text, @FILE, or - for standard input.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="The ID of a project.")] = None,
    parent: Annotated[str | None, typer.Option(help="The task that it is a part of.")] = None,
    priority: Annotated[float | None, typer.Option(help="Higher runs first.")] = None,
    budget_cents: Annotated[
        int | None, typer.Option(min=1, help="The most that it may cost, in cents.")
    ] = None,
    deadline: Annotated[
        datetime | None,
        typer.Option(
            help=(
                "The deadline, in the time zone of this machine. The task fails if it has not "
                "ended by then."
            )
        ),
    ] = None,
    output_schema: Annotated[
        str | None,
        typer.Option(help="A JSON Schema that the output must match: JSON, @FILE or -."),
    ] = None,
    dry_run: DryRun = False,
    follow: Follow = False,
    until_review: UntilReview = False,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Create a task.

    With --follow, the exit code is 0 if the task is completed, 3 if it failed and 4 if it was
    cancelled.

    Example: rota tasks create "New colleagues" --agent process-writer --input @notes.txt --follow
    """
    if [text, description, output_schema].count("-") > 1:
        # The second one would be empty.
        raise typer.BadParameter("Only one option can read standard input (-).")
    about = {
        "name": name,
        "input": read_text(text),
        "description": read_text(description),
        "project_id": project,
        "parent_task_id": parent,
        "priority": priority,
        "budget_cents": budget_cents,
        "deadline": None if deadline is None else deadline.astimezone(),
        "output_schema": read_json(output_schema, "--output-schema"),
    }
    if dry_run:
        if agent is None:
            raise typer.BadParameter("A dry run needs --agent.")
        _print_quote(session, session.client.tasks.quote(agent=agent, **about))
        return
    task = session.client.tasks.create(agent=agent, idempotency_key=idempotency_key, **about)
    _created(session, task, follow=follow, until_review=until_review)


@client_command(commands, "list")
def list_tasks(
    session: Session,
    status: Annotated[
        list[Status] | None, typer.Option(help="Only this state. Can be repeated.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only tasks of this agent.")] = None,
    project: Annotated[str | None, typer.Option(help="Only tasks of this project.")] = None,
    search: Annotated[str | None, typer.Option(help="Only tasks with these words.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 20,
) -> None:
    """List tasks, the newest first.

    Example: rota tasks list --status FAILED --status CANCELLED
    """
    pages = session.client.tasks.list(
        status=[each.value for each in status] if status else None,
        agent=agent,
        project_id=project,
        q=search,
        page_size=page_size(limit),
    )
    columns = ("ID", "Status", "Name", "Agent", "Cost", "Created")
    empty = "There are no tasks."
    print_list("tasks", pages, limit, columns, _row, empty, as_json=session.as_json)


@client_command(commands)
def show(
    session: Session,
    task_id: TaskId,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Show each model call, tool call and approval.")
    ] = False,
) -> None:
    """Show a task: its state, its output and what it cost."""
    task = session.client.tasks.get(task_id)
    steps = list(session.client.tasks.timeline(task_id)) if timeline else None
    if session.as_json:
        print_json({"task": task} if steps is None else {"task": task, "steps": steps})
        return
    _print_task(task)
    if steps is not None:
        rows = [
            (
                step.run,
                step.step,
                step.kind,
                step.name,
                step.outcome or step.state,
                f"${step.cost_usd}",
                moment(step.started_at),
            )
            for step in steps
        ]
        columns = ("Run", "Step", "Kind", "Name", "Outcome", "Cost", "Started")
        print_text("")
        print_table(columns, rows, "Nothing has happened yet.")
        for step in steps:
            if (reason := _reason(step)) is not None:
                print_text(f"\nStep {step.step}, {step.name}: {reason}")


@client_command(commands)
def follow(
    session: Session,
    task_id: TaskId,
    until_review: UntilReview = False,
    after: Annotated[
        int | None,
        typer.Option(min=0, help="Begin after this event's number. Default: from the start."),
    ] = None,
) -> None:
    """Show what happens in a task, from its beginning until it ends."""
    from rota.cli import follow as following

    code = following.follow(
        session.client,
        task_id,
        as_json=session.as_json,
        stops_at_review=until_review,
        after=after,
    )
    raise typer.Exit(code)


@client_command(commands)
def retry(
    session: Session,
    task_id: TaskId,
    start: Annotated[
        From,
        typer.Option("--from", help="From failure, finished steps are kept and not charged again."),
    ] = From.START,
    follow: Follow = False,
    until_review: UntilReview = False,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Run a failed task again.

    Example: rota tasks retry task_… --from failure --follow
    """
    task = session.client.tasks.retry(task_id, from_=start.value, idempotency_key=idempotency_key)
    _created(session, task, follow=follow, until_review=until_review)


@client_command(commands)
def cancel(session: Session, task_id: TaskId) -> None:
    """Cancel a task, its run and its subtasks."""
    task = session.client.tasks.cancel(task_id)
    if session.as_json:
        print_json({"task": task})
    else:
        print_text(f"{task.id} is {task.status}.")


@client_command(commands)
def fork(
    session: Session,
    task_id: TaskId,
    step: Annotated[
        int | None,
        typer.Option("--step", min=0, help="The last step to copy. See --options."),
    ] = None,
    options: Annotated[
        bool, typer.Option("--options", help="Show the steps, versions and models to choose from.")
    ] = False,
    agent_version: Annotated[
        int | None, typer.Option(min=1, help="Another version of the agent.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Another model.")] = None,
    dry_run: DryRun = False,
    follow: Follow = False,
    until_review: UntilReview = False,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Create a task that copies the steps of this one up to a step, and continues from there.

    Example: rota tasks fork task_… --step 3 --model strong
    """
    tasks = session.client.tasks
    if options:
        found = tasks.fork_options(task_id)
        if session.as_json:
            print_json({"fork": found})
            return
        print_fields(
            [
                ("Possible", "yes" if found.available else f"no: {found.reason}"),
                ("Steps", ", ".join(map(str, found.steps))),
                ("Versions", ", ".join(map(str, found.versions))),
                ("Models", ", ".join(found.models)),
            ]
        )
        return
    if step is None:
        raise typer.BadParameter("Choose a --step. --options shows which ones there are.")
    if dry_run:
        quote = tasks.quote_fork(task_id, from_step=step, agent_version=agent_version, model=model)
        _print_quote(session, quote)
        return
    task = tasks.fork(
        task_id,
        from_step=step,
        agent_version=agent_version,
        model=model,
        idempotency_key=idempotency_key,
    )
    _created(session, task, follow=follow, until_review=until_review)


def _created(session: Session, task: "Task", *, follow: bool, until_review: bool) -> None:
    from rota.cli import follow as following

    if not (follow or until_review):
        if session.as_json:
            print_json({"task": task})
        else:
            print_text(task.id)
        return
    if not session.as_json:
        print_note(task.id)
    code = following.follow(
        session.client, task.id, as_json=session.as_json, stops_at_review=until_review
    )
    if code is not ExitCode.OK:
        raise typer.Exit(code)


def _row(task: "Task") -> tuple[object, ...]:
    return (
        task.id,
        task.status,
        task.name,
        task.assigned_agent,
        f"${task.usage.cost_usd}",
        moment(task.created_at),
    )


def _reason(step: "TimelineStep") -> str | None:
    """Why a call failed or was rejected, or why an answer of the model could not be used."""
    if step.note:
        return step.note
    is_refused = step.kind == "tool" and step.outcome in ("failed", "rejected")
    return str(step.result) if is_refused else None


def _print_task(task: "Task") -> None:
    usage = task.usage
    tokens = f"{usage.input_tokens} in, {usage.output_tokens} out" if usage.steps else None
    print_fields(
        [
            ("ID", task.id),
            ("Name", task.name),
            ("Status", task.status),
            ("Agent", task.assigned_agent),
            ("Description", task.description),
            ("Created", moment(task.created_at)),
            ("Finished", moment(task.finished_at)),
            ("Deadline", moment(task.deadline)),
            ("Cost", f"${usage.cost_usd}"),
            ("Tokens", tokens),
            ("Error", f"{task.error.code}: {task.error.message}" if task.error else None),
            ("Input", task.input),
        ]
    )
    if task.output_data is not None:
        print_text("")
        print_json(task.output_data)
    elif task.output:
        print_text(f"\n{task.output}")


def _print_quote(session: Session, quote: "Quote") -> None:
    if session.as_json:
        print_json({"quote": quote})
        return
    print_fields(
        [
            ("Agent", f"{quote.agent.display_name} (version {quote.agent.version})"),
            ("Costs at most", f"${quote.maximum_cost_usd}"),
            ("Holds", dollars(quote.budget_cents)),
            ("Usually costs", f"${quote.typical_cost.median_usd}" if quote.typical_cost else None),
            ("Covered", "yes" if quote.balance.covered else "no, the balance is too low"),
            ("Approval gates", ", ".join(quote.opens_gates) or "no"),
            ("Missing tools", ", ".join(quote.missing_tools)),
        ]
    )
