"""Chat webhooks: the shapes of three services, refusals, and the URL as a secret."""

from datetime import timedelta
from typing import Any

import pytest

from rota.notifications.chat import payload, shortened
from rota.notifications.messages import Message
from rota.notifications.news import Line
from rota.secret_rotation import rotate_all
from tests.notifications.receivers import Channel
from tests.notifications.world import (
    Desk,
    delivery,
    failed,
    program,
    put,
    shown,
    subscribe,
    waiting,
)
from tests.service import Person

HOSTILE = "Pay `now` <!channel> @all [x](https://evil.test) <https://evil.test|y> & done"


def chat(channel: Channel, service: str = "slack", *kinds: str) -> dict[str, Any]:
    wanted = list(kinds or ("approval_waiting", "task_failed"))
    return {"kinds": wanted, "url": channel.url, "service": service}


async def chatter(desk: Desk, channel: Channel, service: str = "slack") -> Person:
    return await desk.person(mail={"kinds": []}, chat=chat(channel, service))


@pytest.mark.parametrize("service", ["slack", "mattermost", "teams"])
async def test_a_message_has_the_shape_of_the_service(
    desk: Desk, channel: Channel, service: str
) -> None:
    person = await chatter(desk, channel, service)
    task = await waiting(await program(person), "Order paper")
    await desk.send()
    assert desk.mails(person) == []
    [message] = channel.messages
    url = f"{desk.service.settings.public_url}/acct_{person.user_id.hex}/reviews/{task['id']}"
    if service == "teams":
        card = message["attachments"][0]["content"]
        assert card["actions"][0]["url"] == url
        texts = [inline["text"] for block in card["body"] for inline in block["inlines"]]
        assert "Approve the task “Order paper”" in texts
    else:
        link = f"<{url}|Open>" if service == "slack" else f"[Open]({url})"
        assert link in message["text"]
        assert "`Approve the task “Order paper”`" in message["text"]


def hostile_message() -> Message:
    return Message(
        subject=HOSTILE,
        heading="2 approvals needed",
        lines=[Line(HOSTILE, HOSTILE, "A task", HOSTILE, "/x", "task_1")],
        more=1,
        url="https://rota.test/x",
        action="Open the dashboard",
        base_url="https://rota.test",
        settings_url="https://rota.test/s",
        id="1",
    )


def test_texts_of_others_are_shown_as_text() -> None:
    slack = payload("slack", hostile_message())["text"]
    assert "<!channel>" not in slack
    assert "<https://evil" not in slack
    mattermost = payload("mattermost", hostile_message())["text"]
    # Inside of code, nothing mentions somebody or is a link.
    for text in (slack, mattermost):
        outside = "".join(text.split("`")[::2])
        for part in ("@all", "evil.test", "channel"):
            assert part not in outside
    teams = payload("teams", hostile_message())["attachments"][0]["content"]
    assert {block["type"] for block in teams["body"]} == {"RichTextBlock"}


async def test_the_url_is_a_secret(desk: Desk, channel: Channel) -> None:
    person = await chatter(desk, channel)
    found = (await shown(person))["chat"]
    assert found["url"] == f"http://127.0.0.1:{channel.port}/…-url"
    assert "secret" not in str(await shown(person))
    async with desk.service.owner() as connection:
        rows = await connection.fetch("SELECT * FROM notification_settings")
        entries = await connection.fetch("SELECT private FROM audit_entries")
    assert "a-long-and-secret" not in str(rows) + str(entries)
    # What was read can be sent back, and an absent URL stays.
    for url in ({"url": found["url"]}, {}):
        kept = await subscribe(
            person, mail={"kinds": []}, chat={"kinds": ["task_failed"], "service": "teams"} | url
        )
        assert kept["chat"]["url"] == found["url"]
    await failed(await program(person))
    await desk.send()
    assert channel.messages[0]["type"] == "message"
    removed = await subscribe(person, chat={"kinds": [], "url": None})
    assert removed["chat"] == {"kinds": [], "url": None, "service": None}


async def test_a_url_survives_a_rotation_of_the_secret_key(desk: Desk, channel: Channel) -> None:
    await chatter(desk, channel)
    counts = await rotate_all(desk.parts.db, desk.service.database_url, desk.parts.vault)
    assert counts["chat webhooks"].unreadable == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kinds": ["task_failed"]}, "chat.url"),
        ({"kinds": [], "url": "https://hooks.test/x"}, "chat.service"),
        ({"kinds": [], "url": "ftp://hooks.test/x", "service": "slack"}, "chat.url"),
        ({"kinds": [], "url": "http://10.0.0.1/x", "service": "slack"}, "chat.url"),
        ({"kinds": ["weather"]}, "chat.kinds"),
        ({"kinds": [], "colour": "red"}, "chat.colour"),
    ],
)
async def test_a_chat_that_cannot_work_is_refused(
    desk: Desk, body: dict[str, Any], field: str
) -> None:
    person = await desk.service.sign_in()
    refused = await put(person, chat=body)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["details"][0]["field"].startswith(field)


async def test_a_webhook_that_is_gone_is_given_up_and_shown(desk: Desk, channel: Channel) -> None:
    person = await chatter(desk, channel)
    channel.answers = [(410, "")]
    await waiting(await program(person))
    await desk.send()
    gone = await delivery(person, "approval_waiting", "chat")
    assert (gone["state"], gone["waiting"]) == ("failed", 0)
    assert "410" in gone["error"]
    assert "secret" not in gone["error"]


async def test_a_busy_webhook_is_tried_again_when_it_wants(desk: Desk, channel: Channel) -> None:
    person = await chatter(desk, channel)
    channel.answers = [(429, "Retry-After: 600\r\n"), (503, "Retry-After: soon\r\n")]
    await waiting(await program(person))
    await desk.send()
    await desk.later(person, timedelta(minutes=9))
    await desk.send()
    assert len(channel.answers) == 1
    await desk.later(person, timedelta(minutes=2))
    await desk.send()
    await desk.later(person, timedelta(minutes=10))
    await desk.send()
    assert len(channel.messages) == 1


async def test_a_redirect_is_not_followed(desk: Desk, channel: Channel) -> None:
    person = await chatter(desk, channel)
    channel.answers = [(307, f"Location: http://127.0.0.1:{channel.port}/elsewhere\r\n")]
    await waiting(await program(person))
    await desk.send()
    assert (await delivery(person, "approval_waiting", "chat"))["state"] == "failed"
    assert len(channel.paths) == 1


async def test_a_webhook_that_cannot_be_reached_is_tried_again(desk: Desk) -> None:
    person = await chatter(desk, Channel())
    await waiting(await program(person))
    await desk.send()
    tried = await delivery(person, "approval_waiting", "chat")
    assert tried["state"] == "retrying"
    assert tried["error"].startswith("The webhook cannot be reached")


async def test_a_stored_url_that_cannot_be_read_is_reported(desk: Desk, channel: Channel) -> None:
    person = await chatter(desk, channel)
    await waiting(await program(person))
    async with desk.service.owner() as connection:
        spoil = "UPDATE notification_settings SET sealed_chat_url = $2 WHERE user_id = $1"
        await connection.execute(spoil, person.user_id, b"\x02" + bytes(100))
    await desk.send()
    gone = await delivery(person, "approval_waiting", "chat")
    assert gone["error"] == "The stored URL cannot be read. Save it again."


async def test_a_test_message_says_what_became_of_it(desk: Desk, channel: Channel) -> None:
    person = await desk.service.sign_in()
    refused = await person.post("/api/me/notifications/test", {"channel": "chat"})
    assert refused.status_code == 409
    await subscribe(person, mail={"kinds": []}, chat=chat(channel))
    sent = await person.post("/api/me/notifications/test", {"channel": "chat"})
    assert sent.json() == {"delivered": True, "error": None}
    assert "This is a test" in channel.messages[0]["text"]
    # Not a way to flood a channel.
    again = await person.post("/api/me/notifications/test", {"channel": "mail"})
    assert again.status_code == 429
    assert again.headers["Retry-After"]
    await forget_test(desk, person)
    mailed = await person.post("/api/me/notifications/test", {"channel": "mail"})
    assert mailed.json()["delivered"] is True
    assert [each["Subject"] for each in desk.mails(person)] == ["Test message from Rota"]
    await forget_test(desk, person)
    channel.answers = [(404, "")]
    failing = await person.post("/api/me/notifications/test", {"channel": "chat"})
    assert failing.json()["delivered"] is False
    assert "404" in failing.json()["error"]


async def forget_test(desk: Desk, person: Person) -> None:
    async with desk.service.owner() as connection:
        forget = "UPDATE notification_settings SET last_test_at = NULL WHERE user_id = $1"
        await connection.execute(forget, person.user_id)


def test_a_short_url_shows_only_its_host() -> None:
    assert shortened("https://hooks.test/abc") == "https://hooks.test/…"
