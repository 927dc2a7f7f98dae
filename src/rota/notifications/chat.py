"""Sends messages to incoming webhooks of Slack, Mattermost and Microsoft Teams.

Texts of others are shown as text: in Slack and Mattermost as code, where nothing is a link or
mentions somebody, and in Teams as runs of text, which have no markup.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx2

from rota.notifications.channels import NotDelivered, Refused
from rota.notifications.messages import Message
from rota.notifications.model import ChatService
from rota.notifications.news import Line
from rota.platform.egress import (
    Egress,
    EgressRefused,
    EgressTimeout,
    ResponseRejected,
    time_limit,
)

TIME_LIMIT_S = 15.0
MAX_RETRY_AFTER_S = 3_600.0
# The URL is wrong, or the webhook was removed. Trying again does not help.
_FINAL = frozenset((400, 401, 403, 404, 405, 410, 413))


class ChatSender:
    def __init__(self, egress: Egress, *, limit_s: float = TIME_LIMIT_S) -> None:
        self._egress = egress
        self._limit_s = limit_s

    def check_url(self, url: str) -> None:
        """Raises `EgressRefused` if messages cannot be sent there."""
        self._egress.check_url(url)

    async def send(
        self, account_id: UUID, url: str, service: ChatService, message: Message
    ) -> None:
        try:
            # Without redirects: the URL is a secret, and a webhook has no reason to move.
            async with time_limit(self._limit_s), self._egress.client(account_id) as client:
                response = await client.post(url, json=payload(service, message))
        except EgressRefused as error:
            raise Refused(str(error)) from None
        except (EgressTimeout, ResponseRejected) as error:
            raise NotDelivered(str(error)) from None
        except (httpx2.HTTPError, OSError) as error:
            # Its text can contain the URL.
            raise NotDelivered(f"The webhook cannot be reached ({type(error).__name__}).") from None
        status = response.status_code
        if response.is_success:
            return
        if status in _FINAL or 300 <= status < 400:
            raise Refused(
                f"The webhook returned status {status}. Create a new webhook in the chat "
                "service and save its URL."
            )
        raise NotDelivered(
            f"The webhook returned status {status}.",
            retry_after_s=_seconds(response.headers.get("retry-after")),
        )


def payload(service: ChatService, message: Message) -> Mapping[str, Any]:
    return _card(message) if service == "teams" else {"text": _marked_text(service, message)}


def _marked_text(service: ChatService, message: Message) -> str:
    parts = [_bold(service, message.sentence)]
    for line in message.lines:
        shown = [_code(service, line.text), _origin(service, line)]
        if line.detail:
            shown.append(_code(service, line.detail))
        shown.append(_link(service, message.base_url + line.path, "Open"))
        parts.append("\n".join(filter(None, shown)))
    if message.more:
        parts.append(f"And {message.more} more.")
    if not message.lines or message.more:
        parts.append(_link(service, message.url, message.action))
    return "\n\n".join(parts)


def _bold(service: ChatService, text: str) -> str:
    return f"*{text}*" if service == "slack" else f"**{text}**"


def _link(service: ChatService, url: str, text: str) -> str:
    return f"<{url}|{text}>" if service == "slack" else f"[{text}]({url})"


def _code(service: ChatService, text: str) -> str:
    """Text of others."""
    if service == "slack":
        # Slack wants these escaped, also in code.
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "`" + text.replace("`", "'") + "`"


def _origin(service: ChatService, line: Line) -> str:
    """The agent and the task, or the account."""
    agent = f"Agent: {_code(service, line.agent)}" if line.agent else ""
    about = "" if line.about == line.text else f"Task: {_code(service, line.about)}"
    if line.task_id is None:
        about = f"Account: {_code(service, line.about)}"
    return ", ".join(filter(None, (agent, about)))


def _card(message: Message) -> Mapping[str, Any]:
    """An adaptive card, as the workflows of Teams take it."""
    body = [_run(message.sentence, weight="Bolder")]
    for line in message.lines:
        body.append(_run(line.text))
        agent = f"Agent: {line.agent}" if line.agent else ""
        about = "" if line.about == line.text else line.about
        small = " · ".join(filter(None, (agent, about, line.detail)))
        if small:
            body.append(_run(small, isSubtle=True, size="Small"))
    if message.more:
        body.append(_run(f"And {message.more} more."))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": message.action, "url": message.url}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _run(text: str, **style: Any) -> dict[str, Any]:
    """A paragraph of plain text."""
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def shortened(url: str) -> str:
    """The URL without what is secret in it: its host, and its last characters."""
    parsed = httpx2.URL(url)
    start = f"{parsed.scheme}://{parsed.netloc.decode()}/…"
    return start + url[-4:] if len(url) > len(start) + 16 else start


def _seconds(value: str | None) -> float | None:
    if value is None or not value.strip().isdecimal():
        return None
    return min(float(value), MAX_RETRY_AFTER_S)
