"""Links in mails decide nothing, and turn off only what they name."""

import asyncio
import re

from tests.notifications.world import (
    ALL,
    Desk,
    html_of,
    program,
    shown,
    text_of,
    unsubscribe_path,
    waiting,
)


async def test_opening_links_500_times_changes_nothing(desk: Desk) -> None:
    person = await desk.person()
    task = await waiting(await program(person))
    await desk.send()
    [mail] = desk.mails(person)
    base = desk.service.settings.public_url
    urls = set(re.findall(rf"{re.escape(base)}[^\s\"<>]*", text_of(mail) + html_of(mail)))
    assert len(urls) == 3
    before = await shown(person)
    async with desk.service.owner() as connection:
        entries = "SELECT count(*) FROM audit_entries WHERE account_id = $1"
        recorded = await connection.fetchval(entries, person.user_id)

        async def opened(url: str, browser: bool) -> None:
            headers = {"Accept": "text/html,*/*"} if browser else {}
            # As a scanner does: without a session, or with one.
            who = person.auth if browser else {}
            answer = await desk.service.http.get(url.removeprefix(base), headers=headers | who)
            assert answer.status_code < 500

        for _ in range(10):
            await asyncio.gather(
                *[opened(url, bool(number % 2)) for number in range(17) for url in urls]
            )
        assert await connection.fetchval(entries, person.user_id) == recorded
    assert await shown(person) == before
    review = (await person.get(f"/api/tasks/{task['id']}/review")).json()["review"]
    assert review["state"] == "pending"


async def test_a_link_turns_off_one_kind_without_a_session(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    await waiting(bot)
    await desk.send()
    [mail] = desk.mails(person)
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    path = unsubscribe_path(mail)
    http = desk.service.http
    asked = await http.get(path)
    assert asked.json() == {"kind": "approval_waiting", "subscribed": True}
    page = await http.get(path, headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["location"]) == (
        303,
        f"/unsubscribe#{path.rpartition('/')[2]}",
    )
    # As RFC 8058 wants it, and again.
    for _ in range(2):
        done = await http.post(path, data={"List-Unsubscribe": "One-Click"})
        assert done.json() == {"kind": "approval_waiting", "subscribed": False}
    assert (await http.get(path)).json()["subscribed"] is False
    assert (await shown(person))["mail"]["kinds"] == ALL[1:]
    await waiting(bot)
    await desk.send()
    assert len(desk.mails(person)) == 1
    entries = (await person.get("/api/audit?limit=50")).json()["entries"]
    assert [each["action"] for each in entries].count("notifications.unsubscribed") == 1


async def test_a_changed_link_is_refused(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await desk.send()
    path = unsubscribe_path(desk.mails(person)[0])
    start, _, token = path.rpartition("/")
    other = "A" if token[30] != "A" else "B"
    http = desk.service.http
    for wrong in (token[:30] + other + token[31:], token[:-2], "x", "é", "a" * 2_000):
        for answer in (await http.get(f"{start}/{wrong}"), await http.post(f"{start}/{wrong}")):
            assert answer.status_code == 404, wrong
    assert (await shown(person))["mail"]["kinds"] == ALL
