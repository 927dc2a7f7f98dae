"""`rota notifications …`: what you are notified about by email and in a chat."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rota.cli.exits import ExitCode, fail
from rota.cli.output import print_fields, print_json, print_table, print_text
from rota.cli.session import Session, client_command
from rota.cli.text import moment

if TYPE_CHECKING:
    from rota_sdk.models import NotificationsResponse

notifications = typer.Typer(
    no_args_is_help=True, help="Choose what you are notified about by email and chat."
)

MAIL = {"smtp": "", "log": " (written to the log)", "off": " (this service sends no email)"}


class Content(StrEnum):
    FULL = "full"
    MINIMAL = "minimal"


class Channel(StrEnum):
    MAIL = "mail"
    CHAT = "chat"


class Service(StrEnum):
    SLACK = "slack"
    MATTERMOST = "mattermost"
    TEAMS = "teams"


@client_command(notifications)
def show(session: Session) -> None:
    """Show what you are notified about in the account. Needs a session."""
    _print(session, session.client.notifications.get())


@client_command(notifications, "set")
def set_notifications(
    session: Session,
    mail: Annotated[
        str | None,
        typer.Option(help="What to notify you of by email: approval_waiting,task_failed."),
    ] = None,
    chat: Annotated[
        str | None, typer.Option(help="What to notify you of in a chat. Empty: nothing.")
    ] = None,
    content: Annotated[
        Content | None, typer.Option(help="Whether messages name agents and tasks.")
    ] = None,
    service: Annotated[
        Service | None, typer.Option(help="The chat service of the webhook.")
    ] = None,
    ask_url: Annotated[
        bool,
        typer.Option("--ask-url", help="Ask for the URL of the webhook, which is a secret."),
    ] = False,
    remove_url: Annotated[
        bool, typer.Option("--remove-url", help="Remove the webhook of the chat.")
    ] = False,
) -> None:
    """Change what you are notified about. What is not given stays as it is. Needs a session.

    Example: rota notifications set --mail approval_waiting,task_failed
    """
    if ask_url and remove_url:
        fail("Use either --ask-url or --remove-url.", ExitCode.USAGE)
    now = session.client.notifications.get()
    chat_body: dict[str, Any] = {
        "kinds": list(now.chat.kinds) if chat is None else _kinds(chat),
        "service": service.value if service else now.chat.service,
    }
    if ask_url:
        chat_body["url"] = typer.prompt("URL of the webhook", hide_input=True, err=True)
    elif remove_url:
        chat_body |= {"url": None, "kinds": []}
    found = session.client.notifications.replace(
        content=content.value if content else now.content,
        mail={"kinds": list(now.mail.kinds) if mail is None else _kinds(mail)},
        chat=chat_body,
    )
    _print(session, found)


@client_command(notifications)
def test(
    session: Session,
    channel: Annotated[Channel, typer.Argument(help="mail or chat")],
) -> None:
    """Send a test message to yourself. Needs a session."""
    found = session.client.notifications.test(channel.value)
    if session.as_json:
        print_json(found)
    elif found.delivered:
        print_text("The message was delivered.")
    if not found.delivered:
        fail(found.error or "The message was not delivered.", ExitCode.ERROR)


def _kinds(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _print(session: Session, found: "NotificationsResponse") -> None:
    if session.as_json:
        print_json(found)
        return
    mail, chat = found.mail, found.chat
    print_fields(
        [
            ("By email", ", ".join(mail.kinds) or "nothing"),
            ("Address", (mail.address or "none is verified") + MAIL.get(mail.transport, "")),
            ("In a chat", ", ".join(chat.kinds) or "nothing"),
            ("Webhook", f"{chat.url} ({chat.service})" if chat.url else "none"),
            ("Content", found.content),
        ]
    )
    if found.deliveries:
        print_text("")
        rows = [
            (
                each.kind,
                each.channel,
                each.state,
                str(each.waiting),
                moment(each.last_sent_at),
                each.error or "",
            )
            for each in found.deliveries
        ]
        columns = ("Kind", "Channel", "State", "Waiting", "Last sent", "Error")
        print_table(columns, rows, "")
