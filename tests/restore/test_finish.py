"""What ended after the moment of a restore has ended in the restored database too."""

from pathlib import Path
from typing import Any
from uuid import UUID

from rota.agents.sync import sync
from rota.composition import Composition
from rota.platform import ids
from tests.companies.test_withdrawal import CATALOG, let_approve, with_key
from tests.companies.world import Company, busy_company
from tests.data.test_commands import TOLD_LOW
from tests.mcp.conftest import connect
from tests.mcp.peers import Peer
from tests.notifications.world import shown, subscribe
from tests.restore.world import Restored, run, there
from tests.runs.gated_run import GatedRun
from tests.runs.runner import shown as shown_review
from tests.schedules import world as schedules
from tests.service import Person, Service
from tests.tasks.world import AGENT, create
from tests.webhooks import world as webhooks


async def session_of(person: Person) -> str:
    found = (await person.get("/api/auth/sessions")).json()["sessions"]
    session: str = next(each["id"] for each in found if each["current"])
    return session


async def events_of(person: Person) -> list[dict[str, Any]]:
    answer = await person.get("/api/events?limit=100", headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["events"]
    return found


async def all_events(person: Person, company: Company) -> list[list[dict[str, Any]]]:
    headers = {"Accept": "application/json", **company.selected}
    answer = await company.owner.get("/api/events?limit=100", headers=headers)
    assert answer.status_code == 200, answer.text
    return [await events_of(person), answer.json()["events"]]


async def last_events(person: Person, company: Company) -> list[dict[str, Any]]:
    return [events[-1] for events in await all_events(person, company)]


def bearer(token: str) -> dict[str, str]:
    return {"type": "bearer", "token": token}


async def test_sessions_keys_and_settings_that_ended_stay_ended(
    old: Service, tmp_path: Path
) -> None:
    person = await old.sign_in()
    thief = await old.sign_in(person.subject)
    made = [(await person.post("/api/keys", {"name": name})).json() for name in ("kept", "gone")]
    hooks = [
        (await webhooks.create(person, f"http://127.0.0.1:9/{name}"))[0]
        for name in ("kept", "disabled", "moved", "deleted", "rotated")
    ]
    plans = [await schedules.create(person) for _ in range(3)]
    await subscribe(person)
    idle = await old.sign_in()
    restored = await Restored.of(old, f"restored_{old.variant}")

    await person.delete(f"/api/auth/sessions/{await session_of(thief)}")
    await person.delete(f"/api/keys/{made[1]['key']['id']}")
    await webhooks.patch(person, hooks[1], enabled=False)
    await webhooks.patch(person, hooks[2], url="http://127.0.0.1:9/other")
    await person.delete(f"/api/webhooks/{hooks[3]['id']}")
    await person.post(f"/api/webhooks/{hooks[4]['id']}/rotate-secret", {"overlapHours": 0})
    await schedules.patch(person, plans[1], paused=True)
    await person.delete(f"/api/schedules/{plans[2]['id']}")
    await subscribe(person, mail={"kinds": ["task_failed"]})
    policy = {"approvals": {"secondPerson": False, "approvers": "named"}, "retention": {"steps": 5}}
    assert (await person.request("PUT", "/api/policies", json=policy)).status_code == 200
    await create(person)
    before = await events_of(person)
    await restored.owned("UPDATE retention_turns SET due_at = now() + interval '1 day'")
    await restored.collect_and_finish(tmp_path / "file")
    # The policy that was set has its turn soon.
    due = await restored.owned("SELECT account_id FROM retention_turns WHERE due_at <= now()")
    assert [row["account_id"] for row in due] == [person.user_id]

    async with restored.serve() as service:
        owner = there(person, service)
        assert (await owner.get("/api/me")).status_code == 200
        assert (await there(idle, service).get("/api/me")).status_code == 200
        assert (await there(thief, service).get("/api/me")).status_code == 401
        statuses = []
        for each in made:
            program = Person(service, "program", each["secret"])
            statuses.append((await program.get("/api/tasks")).status_code)
        assert statuses == [200, 401]
        found = (await owner.get("/api/webhooks")).json()["webhooks"]
        disabled = {hooks[number]["id"] for number in (1, 2, 4)}
        assert {each["id"]: each["disabledReason"] for each in found} == {
            hooks[0]["id"]: None,
            **dict.fromkeys(disabled, "paused"),
        }
        # Those who want to know are told.
        notices = await restored.owned("SELECT kind, subject FROM notices")
        assert {ids.to_wire("wh", row["subject"]) for row in notices} == disabled
        assert {row["kind"] for row in notices} == {"webhook_disabled"}
        found = (await owner.get("/api/schedules")).json()["schedules"]
        assert {each["id"]: each["paused"] for each in found} == {
            plans[0]["id"]: False,
            plans[1]["id"]: True,
        }
        assert (await shown(owner))["mail"]["kinds"] == ["task_failed"]
        assert (await owner.get("/api/policies")).json()["retention"]["steps"] == 5
        # The numbers of lost events are not used again, and an event names them.
        news, *ended = (await events_of(owner))[-4:]
        assert [each["type"] for each in ended] == ["webhook.disabled"] * 3
        assert {each["data"]["webhookId"] for each in ended} == disabled
        assert {(each["data"]["reason"], each["data"]["by"]) for each in ended} == {
            ("restored", None)
        }
        assert news["type"] == "account.restored"
        assert news["sequence"] == before[-1]["sequence"] + 1
        assert news["data"]["lostThrough"] == before[-1]["sequence"]
        assert news["data"]["lostFrom"] == (await events_of(owner))[-5]["sequence"] + 1
        page = await owner.get("/api/events?limit=1", headers={"Accept": "application/json"})
        assert page.json()["total"] == len(await events_of(owner))
        assert "account.restored" not in [
            each["type"] for each in await events_of(there(idle, service))
        ]
        audit = (await owner.get("/api/audit?limit=5")).json()["entries"]
        assert "account.restore_applied" in [each["action"] for each in audit]


async def test_rights_of_tool_servers_and_messages_that_were_narrowed_stay_narrow(
    old: Service, tmp_path: Path
) -> None:
    person = await old.sign_in()
    hooks = "https://hooks.slack.com/services"
    async with Peer().serve() as kept, Peer().serve() as fewer, Peer().serve() as other:
        servers = [
            await connect(person, peer.url, name, auth=bearer("old"))
            for name, peer in (("kept", kept), ("fewer", fewer), ("other", other))
        ]
        chat = {"kinds": ["task_failed"], "service": "slack", "url": f"{hooks}/T0/B0/old"}
        await subscribe(person, chat=chat)
        restored = await Restored.of(old, f"restored_{old.variant}")
        for number, body in (
            (1, {"allowedTools": ["add"]}),
            (2, {"auth": bearer("new")}),
        ):
            path = f"/api/mcp/{servers[number]['id']}"
            changed = await person.request("PATCH", path, json=body)
            assert changed.status_code == 200, changed.text
        await subscribe(person, content="minimal", chat=chat | {"url": f"{hooks}/T0/B0/new"})
    await restored.collect_and_finish(tmp_path / "file")

    async with restored.serve() as service:
        owner = there(person, service)
        found = (await owner.get("/api/mcp")).json()["servers"]
        assert {each["name"]: each["allowedTools"] for each in found} == {
            "kept": None,
            "fewer": ["add"],
            "other": [],
        }
        settings = await shown(owner)
        assert (settings["content"], settings["chat"]["kinds"]) == ("minimal", [])
    rows = await restored.owned(
        "SELECT name FROM mcp_servers WHERE account_id = $1 AND sealed_headers IS NOT NULL",
        person.user_id,
    )
    assert {row["name"] for row in rows} == {"kept", "fewer"}


async def test_members_who_were_removed_stay_removed(old_a: Service, tmp_path: Path) -> None:
    company = await Company.create(old_a)
    leaver, lowered, raised = [await company.join(role="admin") for _ in range(3)]
    await company.invite("kept@example.test")
    withdrawn = (await company.invite("gone@example.test")).json()["invitation"]
    restored = await Restored.of(old_a, "restored_only_a")

    assert (await company.remove(leaver)).status_code == 200
    assert (await company.change(lowered, role="member")).status_code == 200
    assert (await company.change(raised, role="owner")).status_code == 200
    await company.owner.delete(f"{company.path}/invitations/{withdrawn['id']}")
    late = await company.join()
    await restored.collect_and_finish(tmp_path / "file")

    async with restored.serve() as service:
        found = Company(company.id, there(company.owner, service))
        roles = {each["userId"]: each["role"] for each in await found.members()}
        assert roles == {
            ids.to_wire("user", company.owner.user_id): "owner",
            ids.to_wire("user", lowered.user_id): "member",
            ids.to_wire("user", raised.user_id): "owner",
        }
        refused = await there(leaver, service).get("/api/tasks", headers=company.selected)
        assert refused.status_code == 403
        # Signed in for the first time after the moment, so the person does not exist here.
        assert (await there(late, service).get("/api/me")).status_code == 401
        listed = (await found.owner.get(f"{found.path}/invitations")).json()["invitations"]
        assert [each["email"] for each in listed] == ["kept@example.test"]


async def test_approvals_that_a_policy_took_back_are_taken_back_again(
    old_a: Service, tmp_path: Path
) -> None:
    await sync(old_a.database_url, CATALOG, add_only=True)
    company = await busy_company(old_a)
    await let_approve(company, "anyone")
    owner, member = await with_key(company.owner, company), await company.join()
    async with Composition(old_a.settings, pool_size=4) as parts:
        gated = GatedRun(old_a, parts)
        await gated.open_for([owner] * 3, UUID(company.id.removeprefix("acct_")))
        await gated.begin()
        await gated.answer({"text": "first"}, {"text": "second"})
        before = await gated.review(owner)
    body = {"review": shown_review(before), "decisions": [{"id": before["items"][0]["id"]}]}
    approved = await member.post(f"{gated.path}/approve", body, headers=company.selected)
    assert approved.status_code == 200, approved.text
    restored = await Restored.of(old_a, "restored_only_a")

    await let_approve(company, "named")
    await restored.collect_and_finish(tmp_path / "file")

    async with restored.serve() as service:
        found = await there(owner, service).get(f"{gated.path}/review")
        assert found.json()["review"]["items"] == before["items"]


async def test_the_numbers_of_lost_events_are_skipped_before_anything_is_applied(
    old_a: Service, tmp_path: Path
) -> None:
    person, company = await old_a.sign_in(), await Company.create(old_a)
    leaver = await company.join(role="admin")
    lost = await create(person, agent=AGENT)
    restored = await Restored.of(old_a, "restored_only_a")
    kept = await last_events(person, company)

    path = f"/api/tasks/{lost['id']}"
    assert (await person.request("PATCH", path, json={"status": "CANCELLED"})).status_code == 200
    for _ in range(3):
        await create(person)
        await company.join()
    assert (await company.remove(leaver)).status_code == 200
    before = await last_events(person, company)
    await restored.collect_and_finish(tmp_path / "file")
    again = await restored.finish("--file", str(tmp_path / "file"), "--again")
    assert again.exit_code == 0, again.output

    async with restored.serve() as service:
        there_person = there(person, service)
        there_company = Company(company.id, there(company.owner, service))
        for events, first, last, applied in zip(
            await all_events(there_person, there_company),
            kept,
            before,
            ("task.cancelled", "member.removed"),
            strict=True,
        ):
            new = [each for each in events if each["sequence"] > first["sequence"]]
            assert [each["type"] for each in new] == ["account.restored", applied]
            assert [each["sequence"] for each in new] == [
                last["sequence"] + 1,
                last["sequence"] + 2,
            ]
            assert new[0]["data"]["lostFrom"] == first["sequence"] + 1
            assert new[0]["data"]["lostThrough"] == last["sequence"]


async def test_an_erasure_holds_and_the_person_has_no_second_trial(
    old_a: Service, tmp_path: Path
) -> None:
    person, company = await old_a.sign_in(), await Company.create(old_a)
    await create(person, name="private words")
    restored = await Restored.of(old_a, "restored_only_a")

    for account in (ids.to_wire("acct", person.user_id), company.id):
        erased = await run(old_a.settings, "admin", "accounts", "erase", account, "--yes")
        assert erased.exit_code == 0, erased.output
    first = await restored.collect_and_finish(tmp_path / "file")
    assert "erased: 2" in first.output

    async with restored.serve() as service:
        assert (await there(person, service).get("/api/me")).status_code == 401
        me = (await there(company.owner, service).get("/api/me")).json()
        assert company.id not in [each["id"] for each in me["accounts"]]
    rows = await restored.owned("SELECT hash FROM erased_identities")
    assert len(rows) >= 1


async def test_the_only_owner_who_was_removed_is_a_problem_for_a_person(
    old_a: Service, tmp_path: Path
) -> None:
    company = await Company.create(old_a)
    restored = await Restored.of(old_a, "restored_only_a")
    heir = await company.join(role="admin")
    assert (await company.change(heir, role="owner")).status_code == 200
    assert (await company.remove(company.owner, by=heir)).status_code == 200
    path = tmp_path / "file"
    assert (await restored.collect(path)).exit_code == 0

    refused = await restored.finish("--file", str(path))
    assert refused.exit_code == 1
    assert "Add an owner" in refused.output
    assert "Problems left: 1" in refused.output
    accepted = await restored.finish("--file", str(path), "--accept-problems")
    assert accepted.exit_code == 0, accepted.output


async def test_cancelled_tasks_and_grants_are_applied_and_a_file_can_be_applied_twice(
    old_a: Service, tmp_path: Path
) -> None:
    person = await old_a.sign_in()
    task = await create(person, agent=AGENT)
    account = ids.to_wire("acct", person.user_id)
    async with old_a.owner() as connection:
        await connection.execute(TOLD_LOW, person.user_id)
    restored = await Restored.of(old_a, "restored_only_a")
    path = f"/api/tasks/{task['id']}"
    assert (await person.request("PATCH", path, json={"status": "CANCELLED"})).status_code == 200
    grant = ("admin", "credits", "grant", account, "5", "--reason", "Outage", "--key", "outage")
    assert (await run(old_a.settings, *grant)).exit_code == 0
    await restored.collect_and_finish(tmp_path / "file")

    async with restored.serve() as service:
        owner = there(person, service)
        assert (await owner.get(path)).json()["task"]["status"] == "CANCELLED"
        assert (await owner.get("/api/credits/balance")).json()["topUpCents"] == 500
        async with service.owner() as connection:
            # When the money falls below the amount again, `credits.low` is sent.
            told = "SELECT told_low FROM balances WHERE account_id = $1"
            assert await connection.fetchval(told, person.user_id) is False
        new = await service.sign_in(person.subject)
        key = (await new.post("/api/keys", {"name": "new"})).json()
        policy = {"approvals": {"secondPerson": False, "approvers": "named"}}
        changed = {**policy, "retention": {"steps": 9}}
        assert (await new.request("PUT", "/api/policies", json=changed)).status_code == 200
    refused = await restored.finish("--file", str(tmp_path / "file"))
    assert refused.exit_code == 1
    assert "use --again" in refused.output
    async with restored.serve() as service:
        found = (await there(new, service).get("/api/policies")).json()
        assert found["retention"]["steps"] == 9
    again = await restored.finish("--file", str(tmp_path / "file"), "--again")
    assert again.exit_code == 0, again.output
    async with restored.serve() as service:
        # What was created after the restore stays.
        assert (await there(new, service).get("/api/me")).status_code == 200
        program = Person(service, "program", key["secret"])
        assert (await program.get("/api/tasks")).status_code == 200
        balance = (await there(new, service).get("/api/credits/balance")).json()
        assert balance["topUpCents"] == 500
        restarts = [e for e in await events_of(there(new, service)) if "restored" in e["type"]]
        assert len(restarts) == 1


async def test_a_run_that_has_written_after_the_moment_does_not_write_again(
    old_a: Service, tmp_path: Path
) -> None:
    person = await old_a.sign_in()
    running = await create(person, agent=AGENT)
    waiting = await create(person, agent=AGENT)
    known = await create(person, agent=AGENT)
    continued = await create(person, agent=AGENT)
    copied = await create(person, agent=AGENT)
    uuids = [
        ids.from_wire("task", each["id"]) for each in (running, waiting, known, continued, copied)
    ]
    insert = """
        INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, read_only,
            copied, planned_at, started_at)
        VALUES ($1, $2, $3, 2, 1, 'tool', 'started', 'send', false, $3 > 1,
            now() + $4 * interval '1 hour', now() + $5 * interval '1 hour')
    """
    async with old_a.owner() as connection:
        await connection.execute(insert, person.user_id, uuids[2], 1, 0, 0)
        # The backup has a little more than the moment says.
        await connection.execute(insert, person.user_id, uuids[4], 1, 1, 1)
    restored = await Restored.of(old_a, "restored_only_a")
    async with old_a.owner() as connection:
        for task_id in uuids[:2]:
            await connection.execute(insert, person.user_id, task_id, 1, 0, 0)
        # A retry copied calls that have no result. In one task it started its call again.
        await connection.execute(insert, person.user_id, uuids[3], 2, 0, 1)
        await connection.execute(insert, person.user_id, uuids[4], 2, 2, 1)
    # Every change has an audit entry, which says that the account has changed.
    await create(person)
    await restored.collect_and_finish(tmp_path / "file")

    async with restored.serve() as service:
        owner = there(person, service)
        for task in (running, waiting, continued):
            found = (await owner.get(f"/api/tasks/{task['id']}")).json()["task"]
            assert found["status"] == "FAILED"
            assert found["error"]["code"] == "RESTORED"
            assert found["error"]["retryable"] is True
        for task in (known, copied):
            found = (await owner.get(f"/api/tasks/{task['id']}")).json()["task"]
            assert found["status"] == "PENDING"
