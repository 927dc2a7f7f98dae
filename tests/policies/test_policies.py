"""The policies of an account: who can change them, and what they change."""

import asyncio
from typing import Any

import pytest

from rota.tasks import approval_policies
from tests.policies.world import OFF, ON, Office, approve, code
from tests.service import Service
from tests.tasks.world import create, newcomer, place, until_waiting_for_locks

WAITING = {"status": "WAITING_APPROVAL"}


async def test_a_new_account_has_the_default_policies(board: Service) -> None:
    person = await board.sign_in()
    answer = await person.get("/api/policies")
    approvals = {"secondPerson": False, "approvers": "named", "maxCostCents": None}
    none = {"tasks": None, "steps": None, "events": None, "audit": None}
    assert answer.json() == {
        "approvals": approvals,
        "retention": none,
        "retentionInEffect": none,
    }
    # What was read can be sent back, and changes nothing.
    assert (
        await person.request("PUT", "/api/policies", json=answer.json())
    ).json() == answer.json()


@pytest.mark.parametrize(
    ("approvals", "field"),
    [
        ({}, "approvals.secondPerson"),
        (OFF | {"approvers": "everyone"}, "approvals.approvers"),
        (OFF | {"secondPerson": 1}, "approvals.secondPerson"),
        (OFF | {"maxCostCents": -1}, "approvals.maxCostCents"),
        (OFF | {"maxCostCents": 1.5}, "approvals.maxCostCents"),
        (OFF | {"maxCost": 5}, "approvals.maxCost"),
    ],
)
async def test_policies_that_are_not_valid_are_refused(
    office: Office, approvals: dict[str, Any], field: str
) -> None:
    answer = await office.put(**approvals)
    assert (answer.status_code, code(answer)) == (400, "VALIDATION_ERROR")
    assert field in [each["field"] for each in answer.json()["error"]["details"]]


async def test_only_owners_and_admins_change_policies_and_only_with_a_session(
    office: Office,
) -> None:
    approver, key = office.approvers[0], await office.owner.key()
    for person in (approver, key):
        answer = await office.put(person, **ON)
        assert (answer.status_code, code(answer)) == (403, "AUTHORIZATION_ERROR")
    assert (await key.get("/api/policies")).status_code == 403
    assert (await approver.get("/api/policies")).json()["approvals"]["secondPerson"] is False
    admin = await office.join(role="admin")
    assert (await office.put(admin, **ON)).status_code == 200
    events = [each for each in await office.company.events() if each["type"] == "policy.updated"]
    assert [each["data"]["by"] for each in events] == [admin.wire_id]


async def test_a_second_person_needs_two_approvers(board: Service) -> None:
    person = await board.sign_in()
    alone = await person.request("PUT", "/api/policies", json={"approvals": ON})
    assert (alone.status_code, code(alone)) == (409, "CONFLICT")
    office = await Office.open(board, approvers=0)
    member = await office.join()
    refused = await office.put(**ON)
    assert (refused.status_code, code(refused)) == (409, "CONFLICT")
    assert "has 1 approver." in refused.json()["error"]["message"]
    # If all members can approve, there are two. A named approver is the second one too.
    assert (await office.put(**ON | {"approvers": "anyone"})).status_code == 200
    # Then there would be one.
    assert (await office.put(**ON)).status_code == 409
    assert (await office.put(**OFF)).status_code == 200
    assert (await office.company.change(member, approver=True)).status_code == 200
    assert (await office.put(**ON)).status_code == 200


async def test_a_second_person_stays_possible_when_approvers_are_named(board: Service) -> None:
    office = await Office.open(board, approvers=0)
    member = await office.join()
    anyone = ON | {"approvers": "anyone"}
    assert (await office.put(**anyone)).status_code == 200
    refused = await office.put(**ON)
    assert (refused.status_code, code(refused)) == (409, "CONFLICT")
    # A member can always go. What is not about approvers can still be changed.
    assert (await office.company.remove(member)).status_code == 200
    assert (await office.put(**anyone | {"maxCostCents": 5})).status_code == 200


async def test_every_member_approves_if_anyone_can(office: Office) -> None:
    member = await office.join()
    first, second = [await create(office.owner, **WAITING) for _ in range(2)]
    refused = await approve(member, first)
    assert (refused.status_code, code(refused)) == (403, "AUTHORIZATION_ERROR")
    await office.put(**OFF | {"approvers": "anyone"})
    async with asyncio.timeout(5):
        while (await approve(member, first)).status_code != 200:
            await asyncio.sleep(0.05)
    await office.put(**OFF)
    # Processes remember callers for half a second, but the decision looks at the policy itself.
    late = await approve(member, second)
    assert (late.status_code, code(late)) == (403, "AUTHORIZATION_ERROR")


async def test_a_cost_limit_waits_for_a_task_that_is_being_created(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So every task that is created after the response is under the limit."""
    read = approval_policies.is_above_cost_limit
    finished: list[bool] = []
    changes: list[asyncio.Task[Any]] = []

    async def slow(*args: Any) -> bool:
        found = await read(*args)
        changes.append(asyncio.create_task(office.put(**OFF | {"maxCostCents": 50})))
        done, _ = await asyncio.wait(changes, timeout=1)
        finished.append(bool(done))
        return found

    monkeypatch.setattr(approval_policies, "is_above_cost_limit", slow)
    assert (await create(office.owner, agent="operator"))["status"] == "PENDING"
    monkeypatch.undo()
    assert (await changes[0]).status_code == 200
    assert finished == [False]
    assert (await create(office.owner, agent="operator"))["status"] == "WAITING_APPROVAL"


async def test_a_run_above_the_cost_limit_waits_before_it_starts(board: Service) -> None:
    person = await newcomer(board)
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET max_cost_cents = 50 WHERE id = $1", person.user_id
        )
    # The budget of the agent is 100 cents.
    assert (await create(person, agent="operator"))["status"] == "WAITING_APPROVAL"
    assert (await create(person, agent="operator", budgetCents=51))["status"] == "WAITING_APPROVAL"
    assert (await create(person, agent="operator", budgetCents=50))["status"] == "PENDING"
    assert (await create(person))["status"] == "PENDING"
    quote = await person.post("/api/tasks", {"name": "A task", "agent": "operator", "dryRun": True})
    assert "run" in quote.json()["quote"]["opensGates"]
    batch = await person.post("/api/tasks/batch", {"tasks": [{"name": "n", "agent": "operator"}]})
    assert batch.json()["results"][0]["task"]["status"] == "WAITING_APPROVAL"


async def test_a_retry_above_the_cost_limit_waits_and_an_approved_run_goes_on(
    board: Service,
) -> None:
    person = await newcomer(board)

    async def limit(cents: int | None) -> None:
        async with board.owner() as connection:
            await connection.execute(
                "UPDATE accounts SET max_cost_cents = $2 WHERE id = $1", person.user_id, cents
            )

    async def fail(task: dict[str, Any]) -> None:
        async with board.owner() as connection:
            await place(connection, task, "FAILED")

    async def retried(task: dict[str, Any], start_at: str) -> str:
        answer = await person.post(f"/api/tasks/{task['id']}/retry", {"from": start_at})
        found: str = answer.json()["task"]["status"]
        return found

    task = await create(person, agent="operator", name="Cheap")
    await fail(task)
    await limit(50)
    assert await retried(task, "failure") == "WAITING_APPROVAL"
    assert (await approve(person, task)).status_code == 200
    await fail(task)
    # A person has approved this work with this budget.
    assert await retried(task, "failure") == "PENDING"
    await fail(task)
    assert await retried(task, "start") == "WAITING_APPROVAL"


async def test_a_right_that_a_policy_takes_while_a_decision_waits_is_not_used(
    board: Service, office: Office
) -> None:
    """The transaction began with the right, and waits for the account."""
    member = await office.join()
    await office.put(**OFF | {"approvers": "anyone"})
    task = await create(office.owner, **WAITING)
    async with board.owner() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE", office.account_id
        )
        waiting = asyncio.create_task(member.post(f"/api/tasks/{task['id']}/approve", {}))
        await until_waiting_for_locks(board, 1)
        await connection.execute(
            "UPDATE accounts SET anyone_approves = false WHERE id = $1", office.account_id
        )
        await transaction.commit()
        refused = await waiting
    assert (refused.status_code, code(refused)) == (403, "AUTHORIZATION_ERROR")
    answer = await office.owner.get(f"/api/tasks/{task['id']}")
    assert answer.json()["task"]["status"] == "WAITING_APPROVAL"
