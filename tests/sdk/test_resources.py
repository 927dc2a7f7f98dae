"""Everything besides tasks: schedules, agents, tool servers, money, keys, events."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from rota.platform.signatures import verified
from rota_sdk import errors
from tests.mcp.peers import Peer, definition
from tests.sdk.any_client import AnyClient, url_of
from tests.service import Person, Service


async def test_a_schedule_is_created_changed_run_and_deleted(rota: AnyClient) -> None:
    schedule = await rota(
        lambda c: c.schedules.create(
            name="Weekly",
            cron="0 9 * * MON",
            time_zone="Europe/Berlin",
            task={"name": "Write the checklist", "agent": "process-writer"},
        )
    )
    assert schedule.task.agent == "process-writer"
    details = await rota(lambda c: c.schedules.get(schedule))
    assert len(details.next_times) == 5
    assert (await rota(lambda c: c.schedules.run(schedule))).name == "Write the checklist"
    paused = await rota(lambda c: c.schedules.update(schedule, paused=True))
    assert paused.paused
    assert [each.id for each in await rota.all(lambda c: c.schedules.list())] == [schedule.id]
    await rota(lambda c: c.schedules.delete(schedule))
    assert await rota.all(lambda c: c.schedules.list()) == []


async def test_a_task_that_a_list_has_cut_is_not_sent_back(shop: Service, owner: Person) -> None:
    rota = AnyClient.open("async", url_of(shop), owner.token)
    for number in range(11):
        task = {"name": "x", "input": "x" * 50_000, "description": "x" * 50_000}
        times = {"cron": "0 9 * * MON", "time_zone": "UTC"}
        await rota(partial(_create_schedule, name=f"Weekly {number}", task=task, **times))
    listed = (await rota.all(lambda c: c.schedules.list()))[0]
    assert listed.truncated == ["input", "description"]
    edited = listed.task.model_dump() | {"name": "Other"}
    with pytest.raises(errors.ValidationError):
        await rota(lambda c: c.schedules.update(listed, task=edited))
    whole = (await rota(lambda c: c.schedules.get(listed))).schedule
    assert (await rota(lambda c: c.schedules.update(whole, task=whole))).truncated == []
    copy = partial(_create_schedule, name="Copy", **times)
    assert (await rota(partial(copy, task=whole))).task == whole.task
    with pytest.raises(errors.ValidationError):
        await rota(partial(copy, task=listed))
    with pytest.raises(errors.ValidationError):
        await rota(lambda c: c.schedules.update(whole.id, task=listed))
    assert (await rota(lambda c: c.schedules.update(listed, name="Other"))).name == "Other"
    await rota.close()


def _create_schedule(client: Any, **body: Any) -> Any:
    return client.schedules.create(**body)


async def test_agents_are_found(rota: AnyClient) -> None:
    every = await rota.all(lambda c: c.agents.list(page_size=7))
    names = [agent.name for agent in every]
    assert len(names) == len(set(names)) >= 30
    details = await rota(lambda c: c.agents.get("process-writer"))
    assert details.version == 1
    assert [v.version for v in await rota.all(lambda c: c.agents.versions("process-writer"))] == [1]
    resolved = await rota(lambda c: c.agents.resolve(q="triage a bug report"))
    assert resolved.agent.name in names
    sections = await rota(lambda c: c.agents.catalog())
    assert sum(len(section.agents) for section in sections) == len(names)
    assert {d.name for d in await rota(lambda c: c.agents.departments())}
    assert (await rota(lambda c: c.agents.statistics("process-writer"))).tasks == 0


async def test_a_tool_server_is_connected_and_its_tools_are_called(rota: AnyClient) -> None:
    async with Peer().serve() as peer:
        connected = await rota(lambda c: c.tool_servers.connect(name="peer", url=peer.url))
        server = connected.server
        assert server.status == "CONNECTED"
        tools = await rota.all(lambda c: c.tool_servers.tools(server))
        assert {tool.name for tool in tools} == {tool.name for tool in connected.tools}
        assert (await rota(lambda c: c.tool_servers.ping(server))).ok
        with pytest.raises(errors.NotFoundError):
            await rota(lambda c: c.tool_servers.invoke(server, tool="no such tool"))
        renamed = await rota(lambda c: c.tool_servers.update(server, name="other"))
        assert renamed.server.name == "other"
        accepted = await rota(lambda c: c.tool_servers.accept(server, tools=tools))
        assert len(accepted.tools) == len(tools) > 0
        assert all(tool.accepted for tool in accepted.tools)
        assert await rota.all(lambda c: c.tool_servers.checks(server))
    await rota(lambda c: c.tool_servers.disconnect(server))
    assert await rota.all(lambda c: c.tool_servers.list()) == []


async def test_money_is_read_and_a_top_up_begins(rota: AnyClient) -> None:
    balance = await rota(lambda c: c.credits.balance())
    assert balance.has_allowance
    top_up = await rota(lambda c: c.credits.top_up(amount_cents=2000))
    assert top_up.checkout_url.startswith("http")
    settings = await rota(lambda c: c.credits.update_settings(alert_below_cents=500))
    assert settings == await rota(lambda c: c.credits.settings())
    await rota(lambda c: c.tasks.create(name="T", agent="process-writer"))
    [hold] = await rota.all(lambda c: c.credits.holds())
    assert hold.agent == "process-writer"
    movements = await rota.all(lambda c: c.credits.transactions(page_size=1))
    assert {"hold", "allowance"} <= {each.kind for each in movements}
    today = datetime.now(UTC).date()
    usage = await rota(lambda c: c.credits.usage(from_=today, to=today, group_by="agent"))
    assert usage.group_by == "agent"
    assert (await rota(lambda c: c.credits.forecast())).window_days > 0


async def test_each_variant_has_its_own_plans(rota: AnyClient, shop: Service) -> None:
    plans = await rota(lambda c: c.subscriptions.plans())
    tiers = {plan.tier for plan in plans.plans}
    if shop.variant == "a":
        assert "CORPORATE" in tiers
        with pytest.raises(errors.NotFoundError):
            await rota(lambda c: c.connect_pass.billing())
        with pytest.raises(errors.NotFoundError):
            await rota(lambda c: c.subscriptions.cancel())
        with pytest.raises(errors.ValidationError):
            await rota(lambda c: c.subscriptions.subscribe(plan="no such plan"))
    else:
        assert tiers == {"BASIC", "BUSINESS"}
        assert (await rota(lambda c: c.connect_pass.billing())).billing is None
        assert (await rota(lambda c: c.connect_pass.checkout())).startswith("http")
        with pytest.raises(errors.NotFoundError):
            await rota(lambda c: c.subscriptions.subscribe(plan="standard"))
    assert (await rota(lambda c: c.subscriptions.get())).subscription is None


async def test_a_session_manages_keys(shop: Service, kind: str) -> None:
    person = await shop.sign_in()
    client = AnyClient.open(kind, url_of(shop), person.token)
    soon = datetime.now(UTC) + timedelta(days=1)
    made = await client(
        lambda c: c.keys.create(name="ci", scopes=["tasks:read", "tasks:write"], expires_at=soon)
    )
    assert made.secret.startswith("rota_")
    program = client.with_options(api_key=made.secret)
    assert (await program(lambda c: c.me())).user.id == (await client(lambda c: c.me())).user.id
    with pytest.raises(errors.PermissionDeniedError):
        await program(lambda c: c.keys.create(name="another"))
    assert [key.name for key in await client.all(lambda c: c.keys.list())] == ["ci"]
    await client(lambda c: c.keys.delete(made.key))
    assert [s.current for s in await client.all(lambda c: c.sessions.list())] == [True]
    await client(lambda c: c.auth.logout())
    with pytest.raises(errors.AuthenticationError):
        await client(lambda c: c.me())
    await client.close()


async def test_a_company_invites_changes_and_removes_a_member(shop: Service, kind: str) -> None:
    owner, colleague = await shop.sign_in(), await shop.sign_in()
    client = AnyClient.open(kind, url_of(shop), owner.token)
    other = client.with_options(api_key=colleague.token)
    company = await client(lambda c: c.companies.create(name="Acme"))
    email = f"{colleague.subject}@example.test"
    unused = await client(
        lambda c: c.companies.invite(company, email="other@example.test", role="admin")
    )
    invited = await client(lambda c: c.companies.invite(company, email=email, role="member"))
    await client(lambda c: c.companies.delete_invitation(company, unused.invitation))
    open_now = await client.all(lambda c: c.companies.invitations(company))
    assert [each.email for each in open_now] == [email]
    token = invited.url.partition("#")[2]
    received = await other(lambda c: c.companies.get_invitation(token))
    assert (received.account_name, received.role) == ("Acme", "member")
    joined = await other(lambda c: c.companies.accept_invitation(token))
    assert (joined.id, joined.role, joined.approver) == (company.id, "member", False)
    found = await client.all(lambda c: c.companies.members(company, page_size=1))
    assert [each.email for each in found] == [f"{owner.subject}@example.test", email]
    with pytest.raises(errors.PermissionDeniedError):
        await other(lambda c: c.companies.update(company, name="Other"))
    approver = await client(lambda c: c.companies.update_member(company, found[1], approver=True))
    assert approver.approver
    renamed = await client(lambda c: c.companies.update(company, name="Acme 2"))
    assert (renamed.name, renamed.members) == ("Acme 2", 2)
    await client(lambda c: c.companies.remove_member(company, found[1]))
    assert (await client(lambda c: c.companies.get(company))).members == 1
    with pytest.raises(errors.NotFoundError):
        await other(lambda c: c.companies.get(company))
    await client.close()


async def test_policies_are_replaced_and_a_second_person_is_asked_for(
    shop: Service, kind: str
) -> None:
    owner, colleague = await shop.sign_in(), await shop.sign_in()
    company = (await owner.post("/api/companies", {"name": "Acme"})).json()["account"]["id"]
    client = AnyClient.open(kind, url_of(shop), owner.token, account=company)
    assert (await client(lambda c: c.policies.get())).approvals.max_cost_cents is None
    with pytest.raises(errors.ConflictError):
        await client(
            lambda c: c.policies.replace(approvals={"approvers": "named", "secondPerson": True})
        )
    email = f"{colleague.subject}@example.test"
    invited = await client(lambda c: c.companies.invite(company, email=email, role="admin"))
    accepted = await colleague.post(f"/api/invitations/{invited.url.partition('#')[2]}/accept")
    assert accepted.status_code == 200
    limits = {"approvers": "named", "secondPerson": True, "maxCostCents": 500}
    replaced = await client(lambda c: c.policies.replace(approvals=limits))
    assert replaced.approvals.max_cost_cents == 500
    task = await client(lambda c: c.tasks.create(name="Pay", status="WAITING_APPROVAL"))
    review = await client(lambda c: c.tasks.review(task))
    with pytest.raises(errors.SecondPersonRequiredError) as caught:
        await client(lambda c: c.tasks.approve(task, review=review))
    assert caught.value.because == ["created"]
    other = client.with_options(api_key=colleague.token)
    approved = await other(lambda c: c.tasks.approve(task, review=review))
    assert approved.review.state == "approved"
    await client.close()


async def test_a_rule_is_made_listed_and_deleted(shop: Service, kind: str) -> None:
    client = AnyClient.open(kind, url_of(shop), (await shop.sign_in()).token)
    async with Peer().serve() as peer:
        peer.tools["issue_write"] = definition("issue_write")
        server = (
            await client(lambda c: c.tool_servers.connect(name="github", url=peer.url))
        ).server
        rule = await client(
            lambda c: c.rules.create(
                server_id=server.id,
                tool="issue_write",
                agent="bug-triager",
                arguments={"title": {"any": True}, "labels": {"const": None}},
                expires_at=datetime.now(UTC) + timedelta(days=1),
                max_uses=3,
            )
        )
    assert rule.arguments == {"title": {"any": True}, "labels": {"const": None}}
    assert (rule.state, rule.uses) == ("active", 0)
    await client(lambda c: c.rules.delete(rule))
    assert [each.state for each in await client.all(lambda c: c.rules.list())] == ["revoked"]
    assert (await client(lambda c: c.rules.get(rule))).revoked_at is not None
    await client.close()


async def test_the_audit_trail_and_a_receipt_are_read(rota: AnyClient) -> None:
    before = datetime.now(UTC)
    task = await rota(lambda c: c.tasks.create(name="Check the trail"))
    entries = await rota.all(
        lambda c: c.audit.list(
            action=["task", "key"],
            actor="key",
            resource=task.id,
            from_=before - timedelta(minutes=1),
            to=before + timedelta(minutes=1),
            page_size=1,
        )
    )
    assert [entry.action for entry in entries] == ["task.created"]
    of_user = await rota.all(lambda c: c.audit.list(user_id=entries[0].user_id))
    assert entries[0].sequence in {entry.sequence for entry in of_user}
    head = await rota(lambda c: c.audit.head())
    lines = (await rota(lambda c: c.audit.export())).splitlines()
    assert len(lines) == head.sequence + 1
    receipt = await rota(lambda c: c.tasks.receipt(task))
    assert receipt.receipt["task"] == task.id
    keys = (await rota(lambda c: c.audit.public_keys())).keys
    for signed in (head.jws, json.loads(lines[-1])["head"]):
        assert verified(signed, "rota-audit-head", map(dict, keys))["sequence"] == head.sequence
    assert verified(receipt.jws, "rota-receipt", map(dict, keys)) == receipt.receipt


async def test_signing_in_needs_no_key(shop: Service, kind: str) -> None:
    client = AnyClient.open(kind, url_of(shop), "")
    assert (await client(lambda c: c.auth.config())).issuers
    id_token = await shop.id_token("sdk-person")
    token = await client(lambda c: c.auth.start_session(id_token=id_token))
    signed_in = client.with_options(api_key=token)
    assert (await signed_in(lambda c: c.me())).account.kind == "personal"
    assert await signed_in(lambda c: c.auth.refresh())
    assert (await client(lambda c: c.auth.public_keys())).keys
    assert (await client(lambda c: c.health.live())).status == "live"
    assert (await client(lambda c: c.health.ready())).status == "ready"
    await client.close()


async def test_events_are_listed_in_order(rota: AnyClient) -> None:
    await rota(lambda c: c.tasks.create_batch([{"name": f"T{n}"} for n in range(12)]))
    events = await rota.all(lambda c: c.events.list(page_size=5))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    created = await rota.all(lambda c: c.events.list(type=["task.created"], after=3, page_size=5))
    assert {event.type for event in created} == {"task.created"}
    assert min(event.sequence for event in created) == 4


async def test_a_webhook_is_created_changed_tested_and_deleted(rota: AnyClient) -> None:
    made = await rota(
        lambda c: c.webhooks.create(url="http://name.invalid/", events=["task.failed"])
    )
    assert made.secret is not None
    webhook = made.webhook
    assert (await rota(lambda c: c.webhooks.get(webhook))).events == ["task.failed"]
    changed = await rota(lambda c: c.webhooks.update(webhook, events=None, enabled=False))
    assert (changed.events, changed.state) == (None, "disabled")
    rotated = await rota(lambda c: c.webhooks.rotate_secret(webhook, overlap_hours=1))
    assert rotated.secret != made.secret
    assert not (await rota(lambda c: c.webhooks.test(webhook))).delivered
    [failed] = await rota.all(lambda c: c.webhooks.deliveries(webhook, outcome="failed"))
    assert failed.type == "webhook.test"
    moved = await rota(lambda c: c.webhooks.replay(webhook, from_sequence=1))
    assert moved.confirmed_sequence == 0
    keys = (await rota(lambda c: c.webhooks.public_keys())).keys
    assert keys[0].public_key.startswith("whpk_")
    assert [each.id for each in await rota.all(lambda c: c.webhooks.list())] == [webhook.id]
    await rota(lambda c: c.webhooks.delete(webhook))
    assert await rota.all(lambda c: c.webhooks.list()) == []
