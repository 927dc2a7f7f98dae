"""`rota notifications …`: what the commands do, print and exit with."""

from tests.cli.terminal import Terminal
from tests.service import Person

URL = "http://127.0.0.1:9/services/T0/B0/secret"


async def test_notifications_are_shown_and_changed(rota: Terminal, person: Person) -> None:
    shown = (await rota.ok("notifications", "show")).out
    assert "nothing" in shown
    assert "none" in shown
    chat = {"kinds": ["task_failed"], "url": URL, "service": "slack"}
    body = {"content": "full", "mail": {"kinds": []}, "chat": chat}
    saved = await person.request("PUT", "/api/me/notifications", json=body)
    assert saved.status_code == 200, saved.text
    kinds = "approval_waiting, task_failed"
    options = ("--chat", kinds, "--content", "minimal", "--service", "mattermost")
    changed = (await rota.ok("notifications", "set", *options, "--json")).json
    assert changed["content"] == "minimal"
    assert changed["chat"]["kinds"] == ["approval_waiting", "task_failed"]
    assert changed["chat"]["service"] == "mattermost"
    shown = (await rota.ok("notifications", "show")).out
    assert "approval_waiting" in shown
    assert "secret" not in shown
    removed = (await rota.ok("notifications", "set", "--remove-url", "--json")).json
    assert (removed["chat"]["url"], removed["chat"]["kinds"]) == (None, [])


async def test_a_test_message_that_fails_exits_with_1(rota: Terminal, person: Person) -> None:
    chat = {"kinds": [], "url": URL, "service": "slack"}
    body = {"content": "full", "mail": {"kinds": []}, "chat": chat}
    assert (await person.request("PUT", "/api/me/notifications", json=body)).status_code == 200
    failed = await rota("notifications", "test", "chat")
    assert failed.code == 1
    assert failed.err


async def test_two_ways_for_the_url_are_refused(rota: Terminal) -> None:
    both = await rota("notifications", "set", "--ask-url", "--remove-url")
    assert (both.code, "either" in both.err) == (2, True)
