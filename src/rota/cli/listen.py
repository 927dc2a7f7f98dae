"""`rota listen`: the events of the account as signed webhooks for a program on this machine.

A program that receives webhooks can be developed with it, without an address that the service could
reach. The webhooks are signed as Standard Webhooks says, like those of the service.
"""

import base64
import json
import os
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.connection import checked_url
from rota.cli.exits import ExitCode, fail
from rota.cli.output import print_json, print_note, print_text, wire
from rota.cli.session import Session

if TYPE_CHECKING:
    import httpx

    from rota_sdk import Event

# What the receiver expects as the ID of its webhook.
WEBHOOK_ID = "wh_listen"
VARIABLE = "ROTA_WEBHOOK_SECRET"
PREFIX = "whsec_"
# Between the attempts. A program that is being developed is often just restarting.
PAUSES_S = (0.5, 2.0, 5.0)
TIMEOUT_S = 15.0


def listen(
    session: Session,
    forward_to: Annotated[
        str | None,
        typer.Option(help="Where to send the events. Without it, they are only printed."),
    ] = None,
    type: Annotated[  # noqa: A002
        list[str] | None,
        typer.Option(help="Only events of this type, such as task.completed. Can be repeated."),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(min=0, help="Begin after this event's number. Default: with the next event."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many events. Default: never.")
    ] = None,
) -> None:
    """Show the events of the account, and send them to a local program as signed webhooks.

    The secret comes from ROTA_WEBHOOK_SECRET. Without it, a new one is made and printed.

    Example: rota listen --forward-to http://localhost:3000/webhooks --type task.completed
    """
    sender = _sender(session, forward_to)
    seen = 0
    with session.client.events.follow(after=after, type=type or None) as events:
        if after is None:
            print_note(f"Listening after event {events.last_sequence}.")
        for event in events:
            outcome = sender.send(event) if sender else None
            if session.as_json:
                print_json({"event": event, "delivery": outcome} if sender else event, indent=None)
            else:
                about = f"{event.sequence}  {event.type}  {event.task_id or ''}".rstrip()
                print_text(f"{about}  → {outcome}" if outcome else about)
            seen += 1
            if count is not None and seen >= count:
                return


def _sender(session: Session, forward_to: str | None) -> "Sender | None":
    import httpx

    from rota_sdk import webhooks

    if forward_to is None:
        return None
    if checked_url(forward_to) is None or "://" not in forward_to:
        fail(f"{forward_to!r} is not a URL such as http://localhost:3000/hook.", ExitCode.USAGE)
    # As with the other variables, the empty one is not given.
    given = os.environ.get(VARIABLE)
    text = given or PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()
    try:
        webhooks.sign(b"", secret=text)
    except ValueError:
        fail(f"{VARIABLE} is not base64 after {PREFIX}, or ends there.", ExitCode.USAGE)
    if not given:
        print_note(f"Secret: {text}")
    print_note(f"Webhook ID: {WEBHOOK_ID}")
    account = session.client.me().account.id
    # Redirects are failures, as for the webhooks of the service.
    # A proxy of this machine's environment could not reach a program on the machine.
    return Sender(forward_to, text, account, httpx.Client(timeout=TIMEOUT_S, trust_env=False))


@dataclass(frozen=True)
class Sender:
    url: str
    secret: str
    account_id: str
    http: "httpx.Client"

    def send(self, event: "Event") -> str:
        """Sends it until the program accepts it, a few times. Returns what happened."""
        import httpx

        from rota_sdk import webhooks

        body = json.dumps(
            {**wire(event), "accountId": self.account_id, "webhookId": WEBHOOK_ID},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
        outcome = ""
        for pause_s in (*PAUSES_S, None):
            try:
                signed = webhooks.sign(body, secret=self.secret, message_id=event.id)
                headers = {"Content-Type": "application/json", **signed}
                response = self.http.post(self.url, content=body, headers=headers)
                outcome = str(response.status_code)
                if response.is_success:
                    return outcome
            except httpx.HTTPError as error:
                outcome = f"not delivered: {error or type(error).__name__}"
            if pause_s is not None:
                time.sleep(pause_s)
        return outcome
