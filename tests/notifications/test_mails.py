"""Mails: who gets which, when, and what is in them."""

import asyncio
from datetime import timedelta
from email.utils import parsedate_to_datetime

import pytest

from rota.notifications import delivery as deliveries
from tests.notifications.world import (
    Desk,
    address,
    delivery,
    failed,
    html_of,
    program,
    shown,
    subscribe,
    text_of,
    waiting,
)
from tests.tasks.world import create


async def test_nobody_is_told_anything_at_first(desk: Desk) -> None:
    person = await desk.service.sign_in()
    found = await shown(person)
    assert found["mail"] == {"kinds": [], "address": address(person), "transport": "smtp"}
    assert found["chat"] == {"kinds": [], "url": None, "service": None}
    await waiting(await program(person))
    async with desk.service.owner() as connection:
        count = "SELECT count(*) FROM notices WHERE account_id = $1"
        assert await connection.fetchval(count, person.user_id) == 0
    await desk.send()
    assert desk.mails(person) == []


async def test_an_approval_that_waits_is_told_at_once(desk: Desk) -> None:
    person = await desk.person()
    task = await waiting(await program(person), "Order paper")
    await desk.send()
    [mail] = desk.mails(person)
    assert mail["Subject"] == "Approval needed: Approve the task “Order paper”"
    assert mail["From"] == "Rota <rota@rota.test>"
    assert parsedate_to_datetime(mail["Date"]).tzinfo is not None
    url = f"{desk.service.settings.public_url}/acct_{person.user_id.hex}/reviews/{task['id']}"
    assert url in text_of(mail)
    assert f'href="{url}"' in html_of(mail)
    assert task["id"] in mail["References"]
    assert mail["Auto-Submitted"] == "auto-generated"
    sent = await delivery(person, "approval_waiting")
    assert (sent["state"], sent["waiting"], sent["error"]) == ("idle", 0, None)
    assert sent["lastSentAt"]


async def test_a_message_says_what_happens_without_a_decision(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    await waiting(bot, "Expires")
    due = await waiting(bot, "Is due before that")
    async with desk.service.owner() as connection:
        await connection.execute(
            "UPDATE tasks SET deadline = now() + interval '1 hour' WHERE id = $1",
            due["id"].removeprefix("task_"),
        )
    await desk.send()
    [mail] = desk.mails(person)
    assert "Without a decision, it is cancelled on " in text_of(mail)
    assert "Without a decision, it fails on " in text_of(mail)


async def test_one_message_is_sent_once(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await asyncio.gather(*[desk.send() for _ in range(4)])
    await desk.send()
    assert len(desk.mails(person)) == 1


async def test_what_a_person_does_is_no_news_for_the_same_person(desk: Desk) -> None:
    person = await desk.person()
    await waiting(person)
    await failed(person)
    await desk.send()
    assert desk.mails(person) == []


async def test_a_failed_task_is_told_to_its_creator(desk: Desk) -> None:
    person = await desk.person()
    task = await failed(await program(person), why="The disk is full")
    await desk.send()
    [mail] = desk.mails(person)
    assert mail["Subject"] == "Task failed: Nightly import"
    assert "The disk is full" in text_of(mail)
    assert f"/tasks/{task['id']}" in text_of(mail)


async def test_a_subtask_that_fails_is_left_to_its_parent(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    parent = await create(bot, status="RUNNING")
    child = await create(bot, status="RUNNING", parentTaskId=parent["id"])
    await bot.request("PATCH", f"/api/tasks/{child['id']}", json={"status": "FAILED"})
    await desk.send()
    assert desk.mails(person) == []


async def test_a_task_that_was_retried_in_the_meantime_is_no_news(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    task = await failed(bot)
    retried = await bot.post(f"/api/tasks/{task['id']}/retry", {})
    assert retried.status_code == 200, retried.text
    await desk.send()
    assert desk.mails(person) == []


async def test_a_review_that_was_decided_in_the_meantime_is_no_news(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    task = await waiting(bot)
    assert (await person.post(f"/api/tasks/{task['id']}/approve", {})).status_code == 200
    await desk.send()
    assert desk.mails(person) == []
    # The queue is empty, so the next one is told at once.
    await waiting(bot, "Another")
    await desk.send()
    assert len(desk.mails(person)) == 1


async def test_what_happens_soon_after_a_message_waits_for_one_digest(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    await waiting(bot, "First")
    await desk.send()
    tasks = [await waiting(bot, f"Task {number}") for number in range(12)]
    await desk.send()
    assert len(desk.mails(person)) == 1
    queue = await delivery(person, "approval_waiting")
    assert (queue["state"], queue["waiting"]) == ("waiting", 12)
    # One is decided before the digest.
    assert (await person.post(f"/api/tasks/{tasks[0]['id']}/approve", {})).status_code == 200
    await desk.later(person)
    await desk.send()
    digest = desk.mails(person)[1]
    assert digest["Subject"].startswith("11 approvals needed in ")
    assert digest["References"] is None
    assert "Task 1”" in text_of(digest)
    assert "Task 0”" not in text_of(digest)
    assert "And 1 more." in text_of(digest)
    # Nothing new: nothing is sent, however much time passes.
    await desk.later(person, timedelta(days=3))
    await desk.send()
    assert len(desk.mails(person)) == 2


async def test_a_long_queue_is_one_message_that_counts_all_of_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "PAGE", 5)
    person = await desk.person()
    bot = await program(person)
    approvals = [await waiting(bot, f"Order {number}") for number in range(14)]
    failures = [await failed(bot, f"Import {number}") for number in range(14)]
    assert (await person.post(f"/api/tasks/{approvals[3]['id']}/approve", {})).status_code == 200
    assert (await bot.post(f"/api/tasks/{failures[11]['id']}/retry", {})).status_code == 200
    for _ in range(2):
        await desk.send()
        await desk.later(person)
    mails = {str(mail["Subject"])[:5]: text_of(mail) for mail in desk.mails(person)}
    assert len(desk.mails(person)) == 2
    assert "13 approvals needed." in mails["13 ap"]
    assert "13 tasks failed." in mails["13 ta"]
    for text in mails.values():
        assert "And 3 more." in text
    assert "Order 10”" in mails["13 ap"]
    assert "Order 11”" not in mails["13 ap"]


async def test_a_queue_that_is_too_long_goes_on_in_the_next_message(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "MAX_ITEMS", 3)
    person = await desk.person()
    bot = await program(person)
    for number in range(5):
        await failed(bot, f"Import {number}")
    for _ in range(2):
        await desk.send()
        await desk.later(person)
    subjects = [str(mail["Subject"]) for mail in desk.mails(person)]
    assert [subject[:14] for subject in subjects] == ["3 tasks failed", "2 tasks failed"]


async def test_each_kind_has_its_own_messages(desk: Desk) -> None:
    person = await desk.person(mail={"kinds": ["approval_waiting", "task_failed"]})
    bot = await program(person)
    await waiting(bot)
    await failed(bot)
    await desk.send()
    assert sorted(str(mail["Subject"]).partition(":")[0] for mail in desk.mails(person)) == [
        "Approval needed",
        "Task failed",
    ]


async def test_a_message_can_be_without_content(desk: Desk) -> None:
    person = await desk.person(content="minimal")
    bot = await program(person)
    task = await waiting(bot, "Dismiss Lovelace")
    await failed(bot, "Pay Bobbington")
    await desk.send()
    for mail in desk.mails(person):
        assert "Lovelace" not in mail.as_string()
        assert "Bobbington" not in mail.as_string()
    subjects = {str(mail["Subject"]) for mail in desk.mails(person)}
    assert subjects == {"Approval needed", "Task failed"}
    assert any(f"/reviews/{task['id']}" in text_of(mail) for mail in desk.mails(person))


async def test_what_waits_for_a_kind_that_is_turned_off_is_dropped(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    await waiting(bot)
    await subscribe(person, mail={"kinds": ["task_failed"]})
    await desk.send()
    assert desk.mails(person) == []
    await waiting(bot)
    await subscribe(person)
    await desk.send()
    assert desk.mails(person) == []


async def test_only_verified_addresses_get_mail(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    async with desk.service.owner() as connection:
        forget = "UPDATE users SET verified_email = NULL WHERE id = $1"
        await connection.execute(forget, person.user_id)
    await desk.send()
    assert desk.mails(person) == []
    refused = await person.request(
        "PUT",
        "/api/me/notifications",
        json={"content": "full", "mail": {"kinds": ["task_failed"]}, "chat": {"kinds": []}},
    )
    assert refused.status_code == 409
    assert "verified" in refused.json()["error"]["message"]
    assert (await person.post("/api/me/notifications/test", {"channel": "mail"})).status_code == 409


async def test_hostile_texts_stay_texts(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    name = 'Pay\r\nBcc: evil@example.com <img src="https://evil.test/x">\u202e</a>&amp; ☃'
    await waiting(bot, name)
    await failed(bot, "<script>alert(1)</script>", why='"><b onload=x>\n\nSubject: hi')
    await desk.send()
    mails = desk.mails(person)
    assert len(mails) == 2
    for mail in mails:
        assert mail["Bcc"] is None
        assert len(mail.get_all("Subject", [])) == 1
        for tag in ("<img", "<script", "<b onload", "\u202e"):
            assert tag not in html_of(mail)
        assert "☃" in html_of(mail) or "alert(1)" in html_of(mail)
        assert desk.mailbox.recipients[-1].endswith("@example.test")


async def test_mails_load_nothing(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await desk.send()
    html = html_of(desk.mails(person)[0])
    for loads in ("<img", "<link", "<script", "@import", "url(", "<iframe"):
        assert loads not in html
    assert 'content="light dark"' in html
