"""`rota tasks review`, `approve` and `reject`: decisions by scripts. People use `rota inbox`."""

from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.exits import ExitCode
from rota.cli.output import print_fields, print_json, print_note, print_text
from rota.cli.reviews import item_fields, review_fields
from rota.cli.session import Session, client_command, read_json, read_text
from rota.cli.tasks import IdempotencyKey, TaskId
from rota.cli.tasks import commands as commands

if TYPE_CHECKING:
    from rota_sdk.models import DecisionResponse, Review, ReviewRef, Task

Number = Annotated[
    int, typer.Option("--review", min=1, help="The number of the review that you read.")
]
Digest = Annotated[str, typer.Option(help="Its digest. Both are in: rota tasks review TASK")]


@client_command(commands)
def review(session: Session, task_id: TaskId) -> None:
    """Show what waits for a person in a task."""
    found = session.client.tasks.review(task_id)
    if session.as_json:
        print_json({"review": found})
        return
    print_review(found, session.client.tasks.get(task_id))


@client_command(commands)
def approve(
    session: Session,
    task_id: TaskId,
    number: Number,
    digest: Digest,
    arguments: Annotated[
        str | None,
        typer.Option(help="Other arguments for the call that waits: a JSON object, @FILE or -."),
    ] = None,
    item: Annotated[
        str | None, typer.Option(help="Which call --arguments is for, if several wait.")
    ] = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Approve what a review shows, as it is or with other arguments.

    If a different review is pending, nothing is decided and the exit code is 6. If a second person
    has to approve other arguments, they are in a new review and the exit code is 7. An API key
    needs the scope tasks:approve.

    Example: rota tasks approve task_… --review 1 --digest 4f…
    """
    if item is not None and arguments is None:
        raise typer.BadParameter("--item needs --arguments. Without them, every call is approved.")
    answer = session.client.tasks.approve(
        task_id,
        review=_shown(number, digest),
        decisions=None if arguments is None else _edited(session, task_id, item, arguments),
        idempotency_key=idempotency_key,
    )
    _decided(session, answer)
    if answer.review.state == "pending":
        print_note(
            f"Nothing is approved: the other arguments are in review {answer.review.number}, which "
            f"a second person has to approve."
        )
        raise typer.Exit(ExitCode.NOT_APPROVED)


@client_command(commands)
def reject(
    session: Session,
    task_id: TaskId,
    number: Number,
    digest: Digest,
    reason: Annotated[
        str | None,
        typer.Option(
            help="The reason: a text, @FILE, or - for standard input. With --resume, the agent "
            "reads it."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Let the agent continue without the rejected calls.")
    ] = False,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Reject what a review shows. Without --resume, the task is cancelled."""
    answer = session.client.tasks.reject(
        task_id,
        review=_shown(number, digest),
        reason=read_text(reason),
        resume=resume or None,
        idempotency_key=idempotency_key,
    )
    _decided(session, answer)


def _shown(number: int, digest: str) -> "ReviewRef":
    from rota_sdk.models import ReviewRef

    return ReviewRef(number=number, digest=digest)


def _edited(
    session: Session, task_id: str, item_id: str | None, arguments: str
) -> list[dict[str, object]]:
    """A decision on every call that waits: one with other arguments, the others as they are."""
    new = read_json(arguments, "--arguments")
    waiting = [
        each.id for each in session.client.tasks.review(task_id).items if each.decision is None
    ]
    if item_id is None and len(waiting) != 1:
        raise typer.BadParameter(
            f"{len(waiting)} items wait. Choose one with --item: rota tasks review {task_id}"
        )
    chosen = item_id or waiting[0]
    if chosen not in waiting:
        raise typer.BadParameter(f"{chosen} does not wait. See: rota tasks review {task_id}")
    return [{"id": each} | ({"arguments": new} if each == chosen else {}) for each in waiting]


def _decided(session: Session, answer: "DecisionResponse") -> None:
    if session.as_json:
        print_json(answer)
    else:
        print_text(f"{answer.task.id} is {answer.task.status}.")


def print_review(found: "Review", task: "Task") -> None:
    print_fields([("State", found.state), *review_fields(found, task)])
    for item in found.items:
        print_text("")
        print_fields([("What", item.summary), *item_fields(item)])
        if item.arguments is not None:
            print_json(item.arguments)
