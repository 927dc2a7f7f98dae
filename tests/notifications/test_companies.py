"""In a company, only those are told who can act on it, as of the moment of sending."""

import asyncio
from pathlib import Path

from rota.agents.sync import sync
from rota.notifications import queries
from tests.companies.world import Company, busy_company
from tests.notifications.world import (
    Desk,
    failed,
    program,
    put,
    shown,
    subscribe,
    text_of,
    waiting,
)
from tests.policies.world import Office, OfficeRun, Seat, approve, review_of
from tests.service import Person

CATALOG = Path(__file__).parents[1] / "mcp" / "catalog"


async def told(desk: Desk, *people: Person) -> list[bool]:
    await desk.send()
    return [bool(desk.mails(person)) for person in people]


async def office_of(desk: Desk) -> Office:
    return Office(await busy_company(desk.service))


async def test_only_approvers_are_told_about_approvals(desk: Desk) -> None:
    office = await office_of(desk)
    approver, member = await office.join(approver=True), await office.join()
    for person in (office.owner, approver, member):
        await subscribe(person)
    await waiting(member)
    assert await told(desk, office.owner, approver, member) == [True, True, False]


async def test_with_the_policy_anyone_every_member_is_told(desk: Desk) -> None:
    office = await office_of(desk)
    one, other = await office.join(), await office.join()
    for person in (one, other):
        await subscribe(person)
    assert (await office.put(secondPerson=False, approvers="anyone")).status_code == 200
    await waiting(one)
    # Who caused it knows it.
    assert await told(desk, one, other) == [False, True]


async def test_who_shaped_a_task_is_not_told_if_a_second_person_decides(desk: Desk) -> None:
    office = await office_of(desk)
    one, other = await office.join(role="admin"), await office.join(approver=True)
    for person in (one, other):
        await subscribe(person)
    await office.require_second_person()
    # A program of the person creates it, so the person has not seen it, but cannot approve it.
    await waiting(await program(one))
    assert await told(desk, one, other) == [False, True]


async def test_who_can_no_longer_approve_is_not_told(desk: Desk) -> None:
    office = await office_of(desk)
    approver = await office.join(approver=True)
    await subscribe(approver)
    await waiting(office.owner)
    assert (await office.company.change(approver, approver=False)).status_code == 200
    assert await told(desk, approver) == [False]


async def test_who_removes_an_approver_is_told_what_waits_again(desk: Desk) -> None:
    await sync(desk.service.database_url, CATALOG)
    office = await Office.open(desk.service, approvers=1)
    [leaver] = office.approvers
    run = OfficeRun(desk.service, desk.parts, office)
    await run.connect()
    task = await run.start(office.owner)
    await run.answer({"text": "one"}, {"text": "another"})
    first = (await review_of(leaver, task))["items"][0]["id"]
    assert (await approve(leaver, task, decisions=[{"id": first}])).status_code == 200
    await subscribe(office.owner)
    # The owner is the only one left, and has not seen the new review.
    assert (await office.company.remove(leaver)).status_code == 200
    assert await told(desk, office.owner) == [True]


async def test_removed_members_get_nothing(desk: Desk) -> None:
    office = await office_of(desk)
    leaver = await office.join(approver=True)
    await subscribe(leaver)
    await waiting(office.owner)
    sender = desk.sender()
    # The notice is in the queue of the member, who then leaves.
    await sender._take_notices(set())
    assert (await office.company.remove(leaver)).status_code == 200
    assert await told(desk, leaver) == [False]
    # Who comes back starts without notifications.
    await office.company.add(leaver)
    assert (await leaver.get("/api/me/notifications")).json()["mail"]["kinds"] == []


async def test_a_low_balance_is_told_to_those_who_can_pay(desk: Desk) -> None:
    office = await office_of(desk)
    admin, member = await office.join(role="admin"), await office.join(approver=True)
    for person in (office.owner, admin, member):
        await subscribe(person)
    await lower_balance(desk, office)
    assert await told(desk, office.owner, admin, member) == [True, True, False]
    [mail] = desk.mails(admin)
    assert mail["Subject"].startswith("Balance low: $")


async def test_a_balance_that_rose_again_is_no_news(desk: Desk) -> None:
    office = await office_of(desk)
    await subscribe(office.owner)
    await lower_balance(desk, office)
    async with desk.service.owner() as connection:
        rise = "UPDATE balances SET told_low = false, told_depleted = false WHERE account_id = $1"
        await connection.execute(rise, office.account_id)
    assert await told(desk, office.owner) == [False]


async def lower_balance(desk: Desk, office: Office) -> None:
    """The available money falls below the amount of the alert."""
    owner: Seat = office.owner
    balance = (await owner.get("/api/credits/balance")).json()
    assert balance, balance
    from rota.credits import alerts
    from rota.events import journal

    async with desk.parts.db.write(office.account_id) as tx:
        await journal.lock_account(tx)
        await tx.execute(
            "UPDATE balances SET alert_below = allowance + topup + 1, told_low = false "
            "WHERE account_id = $1",
            office.account_id,
        )
        await alerts.report(tx)


async def test_notifications_are_of_one_account(desk: Desk) -> None:
    """The settings of a company are not those of the personal account, nor of a colleague."""
    office = await office_of(desk)
    colleague = await office.join(approver=True)
    await subscribe(office.owner)
    found = (await office.company.owner.get("/api/me/notifications")).json()
    assert found["mail"]["kinds"] == []
    assert (await colleague.get("/api/me/notifications")).json()["mail"]["kinds"] == []
    stranger = await desk.service.sign_in()
    refused = await stranger.get(
        "/api/me/notifications", headers={"X-Service-Account": office.company.id}
    )
    assert refused.status_code == 403


async def test_keys_cannot_change_notifications(desk: Desk) -> None:
    person = await desk.service.sign_in()
    bot = await program(person)
    assert (await bot.get("/api/me/notifications")).status_code == 403
    assert (await put(bot)).status_code == 403
    assert (await bot.post("/api/me/notifications/test", {"channel": "mail"})).status_code == 403


async def test_a_deleted_account_sends_nothing(desk: Desk) -> None:
    company = await Company.create(desk.service)
    office = Office(company)
    approver = await office.join(approver=True)
    await subscribe(approver)
    await waiting(office.owner)
    await desk.sender()._take_notices(set())
    async with desk.service.owner() as connection:
        for table in ("notification_settings", "notification_queues", "notices"):
            count = f"SELECT count(*) FROM {table} WHERE account_id = $1"
            await connection.execute("DELETE FROM members WHERE account_id = $1", office.account_id)
            async with connection.transaction():
                await connection.execute("SET LOCAL session_replication_role = origin")
                await connection.execute("DELETE FROM accounts WHERE id = $1", office.account_id)
            assert await connection.fetchval(count, office.account_id) == 0
    assert await told(desk, approver) == [False]


async def test_a_disabled_webhook_is_told_to_those_who_can_manage_webhooks(desk: Desk) -> None:
    office = await office_of(desk)
    admin, member = await office.join(role="admin"), await office.join(approver=True)
    for person in (office.owner, admin, member):
        await subscribe(person)
    made = await office.owner.post(
        "/api/webhooks", {"url": "https://127.0.0.1/hook", "description": "Orders"}
    )
    assert made.status_code == 201, made.text
    path = f"/api/webhooks/{made.json()['webhook']['id']}"
    paused = await office.owner.request("PATCH", path, json={"enabled": False})
    assert paused.status_code == 200, paused.text
    # The owner did it in a session.
    assert await told(desk, office.owner, admin, member) == [False, True, False]
    [mail] = desk.mails(admin)
    assert mail["Subject"] == "Webhook disabled: Orders"
    assert "A user or a restore of the service disabled it." in text_of(mail)


async def test_a_reason_that_the_next_release_writes_is_known(desk: Desk) -> None:
    office = await office_of(desk)
    admin = await office.join(role="admin")
    await subscribe(admin)
    made = await office.owner.post("/api/webhooks", {"url": "https://127.0.0.1/hook"})
    path = f"/api/webhooks/{made.json()['webhook']['id']}"
    paused = await office.owner.request("PATCH", path, json={"enabled": False})
    assert paused.status_code == 200, paused.text
    async with desk.service.owner() as connection:
        await connection.execute(
            "UPDATE webhooks SET disabled_reason = 'restored' WHERE account_id = $1",
            office.account_id,
        )
    assert (await office.owner.get(path)).json()["webhook"]["disabledReason"] == "restored"
    assert await told(desk, admin) == [True]
    [mail] = desk.mails(admin)
    assert "was restored from a backup" in text_of(mail)


async def test_a_webhook_that_was_enabled_again_is_no_news(desk: Desk) -> None:
    office = await office_of(desk)
    admin = await office.join(role="admin")
    await subscribe(admin)
    made = await office.owner.post("/api/webhooks", {"url": "https://127.0.0.1/hook"})
    path = f"/api/webhooks/{made.json()['webhook']['id']}"
    for enabled in (False, True):
        changed = await office.owner.request("PATCH", path, json={"enabled": enabled})
        assert changed.status_code == 200, changed.text
    assert await told(desk, admin) == [False]


async def test_only_the_creator_of_a_failed_task_gets_something_to_do(desk: Desk) -> None:
    office = await office_of(desk)
    other = await office.join(approver=True)
    for person in (office.owner, other):
        await subscribe(person)
    await failed(await program(office.owner))
    await desk.sender()._take_notices(set())
    kinds = [
        [each["kind"] for each in (await shown(p))["deliveries"]] for p in (office.owner, other)
    ]
    assert kinds == [["task_failed"], []]


async def test_a_user_who_leaves_and_unsubscribes_at_once_waits_for_no_deadlock(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await desk.send()
    account_id = person.user_id
    async with desk.parts.db.write(account_id, account_id) as unsubscribing:
        await queries.preferences_for_change(unsubscribing, account_id)

        async def leave() -> None:
            async with desk.parts.db.write(account_id, account_id) as leaving:
                await queries.forget(leaving, account_id)

        left = asyncio.create_task(leave())
        async with desk.service.owner() as connection, asyncio.timeout(10):
            while not await connection.fetchval(
                "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database() AND query LIKE '%notification_%')"
            ):
                await asyncio.sleep(0.02)
        # It waits for the settings, and has not locked a queue yet.
        await unsubscribing.execute(
            "SELECT FROM notification_queues WHERE account_id = $1 FOR UPDATE NOWAIT", account_id
        )
    await left
