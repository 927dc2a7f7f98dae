"""`rota webhooks …`: endpoints that receive the events of the account."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.exits import ExitCode, fail
from rota.cli.output import (
    page_size,
    print_fields,
    print_json,
    print_list,
    print_note,
    print_table,
    print_text,
)
from rota.cli.session import Session, client_command
from rota.cli.text import moment

if TYPE_CHECKING:
    from rota_sdk.models import Delivery, Webhook, WebhookSecretResponse

commands = typer.Typer(no_args_is_help=True, help="Send the events of the account to an endpoint.")

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The ID of the webhook (wh_…).")]
Events = Annotated[
    list[str] | None,
    typer.Option(
        "--event", help="Only events of this type, such as task.completed. Can be repeated."
    ),
]


class Outcome(StrEnum):
    DELIVERED = "delivered"
    FAILED = "failed"


@client_command(commands, "list")
def list_webhooks(session: Session) -> None:
    """List the webhooks."""
    found = list(session.client.webhooks.list())
    if session.as_json:
        print_json({"webhooks": found, "total": len(found)})
        return
    rows = [
        (
            each.id,
            each.url,
            _types(each),
            each.state,
            each.confirmed_sequence,
            moment(each.last_delivered_at),
        )
        for each in found
    ]
    columns = ("ID", "URL", "Events", "State", "Confirmed", "Last delivered")
    print_table(columns, rows, "There are no webhooks.")


@client_command(commands)
def create(
    session: Session,
    url: Annotated[str, typer.Argument(help="Where to send events.")],
    event: Events = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
) -> None:
    """Create a webhook and print its secret. The secret is not shown again.

    Example: rota webhooks create https://example.com/rota --event task.completed
    """
    answer = session.client.webhooks.create(url=url, events=event or None, description=description)
    _print_secret(session, answer)


@client_command(commands)
def show(session: Session, webhook: WebhookId) -> None:
    """Show a webhook: its delivery progress, and why deliveries fail."""
    found = session.client.webhooks.get(webhook)
    if session.as_json:
        print_json({"webhook": found})
        return
    skipped = found.skipped
    print_fields(
        [
            ("ID", found.id),
            ("URL", found.url),
            ("Description", found.description),
            ("Events", _types(found)),
            ("State", found.state),
            ("Disabled because", found.disabled_reason),
            ("Confirmed up to event", found.confirmed_sequence),
            ("Skipped", f"{skipped.from_sequence} to {skipped.to_sequence}" if skipped else None),
            ("Last delivered", moment(found.last_delivered_at)),
            ("Failing since", moment(found.failing_since)),
            ("Next attempt", moment(found.next_attempt_at)),
            ("Last error", found.last_error),
            ("Old secret works until", moment(found.old_secret_until)),
        ]
    )


@client_command(commands)
def update(
    session: Session,
    webhook: WebhookId,
    url: Annotated[str | None, typer.Option(help="Where to send events.")] = None,
    event: Events = None,
    all_events: Annotated[
        bool, typer.Option("--all-events", help="Send events of all types.")
    ] = False,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    disable: Annotated[bool, typer.Option("--disable", help="Send nothing until enabled.")] = False,
) -> None:
    """Change a webhook, or disable it."""
    if event and all_events:
        fail("Use --event or --all-events, not both.", ExitCode.USAGE)
    from rota_sdk import UNSET

    changed = session.client.webhooks.update(
        webhook,
        url=UNSET if url is None else url,
        events=None if all_events else event or UNSET,
        description=UNSET if description is None else description,
        enabled=False if disable else UNSET,
    )
    _print_state(session, changed)


@client_command(commands)
def enable(session: Session, webhook: WebhookId) -> None:
    """Enable a webhook. It continues after the last confirmed event."""
    _print_state(session, session.client.webhooks.update(webhook, enabled=True))


@client_command(commands)
def delete(session: Session, webhook: WebhookId) -> None:
    """Delete a webhook and the history of its deliveries."""
    session.client.webhooks.delete(webhook)
    if session.as_json:
        print_json({"deleted": True, "id": webhook})
    else:
        print_text(f"{webhook} is deleted.")


@client_command(commands, "rotate-secret")
def rotate_secret(
    session: Session,
    webhook: WebhookId,
    overlap_hours: Annotated[
        int, typer.Option(min=0, max=168, help="For how many hours the old secret also signs.")
    ] = 24,
) -> None:
    """Replace the secret of a webhook and print the new one."""
    answer = session.client.webhooks.rotate_secret(webhook, overlap_hours=overlap_hours)
    _print_secret(session, answer)


@client_command(commands)
def test(session: Session, webhook: WebhookId) -> None:
    """Send a test event now. The exit code is 1 if the endpoint does not confirm it."""
    delivery = session.client.webhooks.test(webhook)
    if session.as_json:
        print_json({"delivery": delivery})
    else:
        print_text(f"{_outcome(delivery)} in {delivery.duration_ms} ms")
    if not delivery.delivered:
        raise typer.Exit(ExitCode.ERROR)


@client_command(commands)
def replay(
    session: Session,
    webhook: WebhookId,
    from_sequence: Annotated[
        int, typer.Option("--from", min=1, help="The number of the first event to send.")
    ],
) -> None:
    """Send this event and all later ones again, in order."""
    _print_state(session, session.client.webhooks.replay(webhook, from_sequence=from_sequence))


@client_command(commands)
def deliveries(
    session: Session,
    webhook: WebhookId,
    outcome: Annotated[
        Outcome | None, typer.Option(help="Only attempts that succeeded, or that failed.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 20,
) -> None:
    """List the attempts of the last seven days, newest first. --json shows request and response."""
    pages = session.client.webhooks.deliveries(
        webhook, outcome=outcome.value if outcome else None, page_size=page_size(limit)
    )
    columns = ("Sent", "Event", "Type", "Attempt", "Outcome")
    empty = "There are no deliveries."
    print_list("deliveries", pages, limit, columns, _row, empty, as_json=session.as_json)


def _row(delivery: "Delivery") -> tuple[object, ...]:
    return (
        moment(delivery.sent_at),
        delivery.sequence,
        delivery.type,
        delivery.attempt,
        _outcome(delivery),
    )


def _types(webhook: "Webhook") -> str:
    return ", ".join(webhook.events) if webhook.events else "all"


def _outcome(delivery: "Delivery") -> str:
    if delivery.delivered and delivery.response:
        return f"delivered ({delivery.response.status})"
    return f"failed: {delivery.error}"


def _print_state(session: Session, webhook: "Webhook") -> None:
    if session.as_json:
        print_json({"webhook": webhook})
    else:
        print_text(f"{webhook.id} is {webhook.state}, after event {webhook.confirmed_sequence}.")


def _print_secret(session: Session, answer: "WebhookSecretResponse") -> None:
    webhook = answer.webhook
    if answer.secret is None:
        fail(f"The response was lost. Get a new secret: rota webhooks rotate-secret {webhook.id}")
    if session.as_json:
        print_json(answer)
        return
    print_note(f"{webhook.id} sends events to {webhook.url}. Store the secret now:")
    print_text(answer.secret)
