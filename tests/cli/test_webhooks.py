"""`rota webhooks …`: what the commands do, print and exit with."""

from tests.cli.terminal import Terminal

URL = "https://example.com/rota"


async def test_a_webhook_is_created_changed_replayed_and_deleted(rota: Terminal) -> None:
    made = await rota.ok("webhooks", "create", URL, "--event", "task.failed")
    assert made.out.startswith("whsec_")
    [webhook] = (await rota.ok("webhooks", "list", "--json")).json["webhooks"]
    assert webhook["events"] == ["task.failed"]
    name = webhook["id"]
    assert name in made.err
    assert URL in (await rota.ok("webhooks", "list")).out
    shown = (await rota.ok("webhooks", "show", name)).out
    assert "task.failed" in shown
    assert "active" in shown
    changed = await rota.ok("webhooks", "update", name, "--all-events", "--disable", "--json")
    assert (changed.json["webhook"]["events"], changed.json["webhook"]["enabled"]) == (None, False)
    assert "is active" in (await rota.ok("webhooks", "enable", name)).out
    described = await rota.ok("webhooks", "update", name, "--description", "New", "--url", URL)
    assert "is active" in described.out
    assert (await rota.ok("webhooks", "rotate-secret", name)).out.startswith("whsec_")
    rotated = await rota.ok("webhooks", "rotate-secret", name, "--overlap-hours", "0", "--json")
    assert rotated.json["webhook"]["oldSecretUntil"] is None
    assert "after event 0" in (await rota.ok("webhooks", "replay", name, "--from", "1")).out
    assert (await rota.ok("webhooks", "show", name, "--json")).json["webhook"]["id"] == name
    deleted = await rota.ok("webhooks", "delete", name)
    assert deleted.out == f"{name} is deleted.\n"
    other = (await rota.ok("webhooks", "create", URL, "--json")).json["webhook"]["id"]
    gone = await rota.ok("webhooks", "delete", other, "--json")
    assert gone.json == {"deleted": True, "id": other}
    assert (await rota.ok("webhooks", "list")).out == "There are no webhooks.\n"


async def test_a_test_that_fails_exits_with_1_and_is_in_the_deliveries(rota: Terminal) -> None:
    url = "http://name.invalid/"
    webhook = (await rota.ok("webhooks", "create", url, "--json")).json["webhook"]["id"]
    assert (await rota.ok("webhooks", "deliveries", webhook)).out == "There are no deliveries.\n"
    failed = await rota("webhooks", "test", webhook)
    assert failed.code == 1
    assert "failed: The connection failed" in failed.out
    as_json = await rota("webhooks", "test", webhook, "--json")
    assert as_json.code == 1
    assert as_json.json["delivery"]["delivered"] is False
    assert "webhook.test" in (await rota.ok("webhooks", "deliveries", webhook)).out
    found = await rota.ok("webhooks", "deliveries", webhook, "--outcome", "delivered", "--json")
    assert found.json["deliveries"] == []


async def test_what_makes_no_sense_is_refused(rota: Terminal) -> None:
    both = await rota("webhooks", "update", "wh_1", "--all-events", "--event", "task.failed")
    assert (both.code, "not both" in both.err) == (2, True)
    unknown = await rota("webhooks", "show", "wh_1")
    assert unknown.code == 1
    assert "not found" in unknown.err
