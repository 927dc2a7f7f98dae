"""Whoever can no longer approve in a company has approved nothing that waits: open reviews ask
somebody else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rota.agents.sync import sync
from rota.auth.caller import ALL_SCOPES
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform import ids
from rota.runs.deadlines import Deadlines
from rota.tasks import queries
from tests.companies.world import Company, busy_company
from tests.runs.gated_run import GatedRun, current_review
from tests.runs.runner import shown
from tests.service import Person, Service

CATALOG = Path(__file__).parents[1] / "mcp" / "catalog"
ASKED = [{"text": "first"}, {"text": "second"}, {"text": "third"}, {"text": "fourth"}]


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"withdrawal_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, CATALOG)
        yield started


@pytest.fixture
async def company(service: Service) -> Company:
    return await busy_company(service)


@pytest.fixture
async def run(service: Service, company: Company) -> AsyncIterator[GatedRun]:
    """A run that waits at a tool gate with four calls. `one` will leave."""
    leaving = await company.join(role="admin")
    people = [await with_key(person, company) for person in (leaving, company.owner)]
    async with Composition(service.settings, pool_size=4) as parts:
        run = GatedRun(service, parts)
        account_id = UUID(company.id.removeprefix("acct_"))
        await run.open_for([*people, people[1]], account_id)
        await run.begin()
        await run.answer(*ASKED)
        yield run


async def with_key(person: Person, company: Company) -> Person:
    """The person, with an API key of the company instead of a session."""
    body = {"name": "k", "scopes": list(ALL_SCOPES)}
    response = await person.post("/api/keys", body, headers=company.selected)
    return replace(person, token=response.json()["secret"])


async def approve(
    run: GatedRun, person: Person, review: dict[str, Any], *decisions: dict[str, Any]
) -> dict[str, Any]:
    body = {"review": shown(review), "decisions": list(decisions)}
    response = await person.post(f"{run.path}/approve", body)
    assert response.status_code == 200, response.text
    decided: dict[str, Any] = response.json()
    return decided


async def let_approve(company: Company, approvers: str, *, second_person: bool = False) -> None:
    body = {"approvals": {"secondPerson": second_person, "approvers": approvers}}
    answer = await company.owner.request(
        "PUT", "/api/policies", json=body, headers=company.selected
    )
    assert answer.status_code == 200, answer.text


async def leave(company: Company, person: Person) -> None:
    assert (await company.remove(person)).status_code == 200


async def lose_the_right(company: Company, person: Person) -> None:
    await let_approve(company, "named")
    assert (await company.change(person, role="member", approver=True)).status_code == 200
    assert (await company.change(person, approver=False)).status_code == 200


async def lose_the_policy(company: Company, person: Person) -> None:
    assert (await company.change(person, role="member", approver=False)).status_code == 200
    await let_approve(company, "named")


@pytest.mark.parametrize("lose", [leave, lose_the_right, lose_the_policy])
async def test_what_a_person_approved_before_losing_the_right_is_decided_again(
    run: GatedRun, company: Company, lose: Callable[[Company, Person], Awaitable[None]]
) -> None:
    before = await run.review(run.two)
    first, second, third, fourth = (item["id"] for item in before["items"])
    edited = {"id": second, "arguments": {"text": "for my own account"}}
    # Nothing is taken back before.
    await let_approve(company, "anyone")
    await approve(run, run.one, before, {"id": first}, edited)
    kept = await approve(run, run.two, before, {"id": third})
    await lose(company, run.one)

    review = await run.review(run.two)
    # As it was first shown, except for the decision of the person who stays.
    assert review["items"][:2] == before["items"][:2]
    assert review["items"][2] == kept["review"]["items"][2]
    assert (review["number"], review["expiresAt"]) == (2, before["expiresAt"])
    assert review["history"][0]["state"] == "cancelled"
    [event] = [each for each in await company.events() if each["type"] == "task.updated"]
    assert (event["data"]["fields"], event["data"]["by"]) == (["review"], None)
    assert event["taskId"] == run.task_id
    # Whoever still looks at the first review may have seen the edit.
    stale = await run.two.post(f"{run.path}/approve", {"review": shown(before)})
    assert current_review(stale) == review
    await approve(run, run.two, review, {"id": first}, {"id": second}, {"id": fourth})
    await run.begin()
    await run.act()
    assert [made.arguments for made in run.client.made] == ASKED


async def test_an_edit_is_taken_back_also_from_a_review_that_replaced_another(
    run: GatedRun, company: Company
) -> None:
    another = await with_key(await company.join(role="admin"), company)
    before = await run.review(run.two)
    first, second = (item["id"] for item in before["items"][:2])
    await approve(run, run.one, before, {"id": first})
    await approve(run, another, before, {"id": second, "arguments": {"text": "mine"}})
    await leave(company, run.one)
    review = await run.review(run.two)
    assert [item["arguments"] for item in review["items"][:2]] == [ASKED[0], {"text": "mine"}]
    await leave(company, another)
    review = await run.review(run.two)
    assert (review["number"], review["items"]) == (3, before["items"])


async def test_an_edit_from_before_the_policy_for_a_second_person_is_taken_back(
    run: GatedRun, company: Company
) -> None:
    another = await with_key(await company.join(role="admin"), company)
    before = await run.review(run.two)
    first, second = (item["id"] for item in before["items"][:2])
    await approve(run, run.one, before, {"id": first, "arguments": {"text": "mine"}})
    await let_approve(company, "named", second_person=True)
    edited = await approve(run, another, before, {"id": second, "arguments": {"text": "other"}})
    assert edited["review"]["items"][0]["arguments"] == {"text": "mine"}
    await leave(company, run.one)
    review = await run.review(run.two)
    assert review["items"][0] == before["items"][0]
    assert review["items"][1:] == edited["review"]["items"][1:]


async def ended_by_its_deadline(run: GatedRun) -> None:
    """A call was approved with other arguments, and the others had no decision in time."""
    before = await run.review(run.one)
    edited = {"id": before["items"][0]["id"], "arguments": {"text": "for my own account"}}
    await approve(run, run.one, before, edited)
    async with run.parts.db.write(run.account_id) as tx:
        task = await queries.get_for_change(tx, ids.from_wire("task", run.task_id))
        deadlines = Deadlines(run.context, run.loop)
        await deadlines.fail(tx, task, "DEADLINE_EXCEEDED", "Too late.", reason="Too late.")


async def retry(run: GatedRun) -> None:
    response = await run.two.post(f"{run.path}/retry", {"from": "failure"})
    assert response.status_code == 200, response.text
    run.run += 1
    await run.begin(resume=True)
    await run.act()


async def join_again(company: Company, person: Person) -> None:
    await leave(company, person)
    # The key was deleted.
    await company.add(await person.service.sign_in(person.subject), role="admin")


@pytest.mark.parametrize("lose", [leave, lose_the_right, lose_the_policy, join_again])
async def test_a_retry_asks_again_about_a_call_whose_approver_lost_the_right(
    run: GatedRun, company: Company, lose: Callable[[Company, Person], Awaitable[None]]
) -> None:
    await ended_by_its_deadline(run)
    await let_approve(company, "anyone")
    await lose(company, run.one)
    await retry(run)
    assert run.client.made == []
    review = await run.review(run.two)
    [item] = review["items"]
    # Without the edit, as in a review that still waits.
    assert (item["decision"], item["arguments"]) == (None, ASKED[0])
    [call] = [row for row in await run.tool_rows() if row.item_id == item["id"]]
    assert call.arguments == ASKED[0]
    await approve(run, run.two, review, {"id": item["id"]})
    await run.begin()
    await run.act()
    # Another gate opens for the second call.
    [waits] = (await run.review(run.two))["items"]
    assert waits["arguments"] == ASKED[1]


async def test_a_retry_makes_a_call_whose_approver_can_still_approve(
    run: GatedRun, company: Company
) -> None:
    await ended_by_its_deadline(run)
    await let_approve(company, "anyone")
    await company.change(run.one, role="member", approver=False)
    await retry(run)
    for asked in ASKED[1:]:
        review = await run.review(run.two)
        [item] = review["items"]
        assert item["arguments"] == asked
        await approve(run, run.two, review, {"id": item["id"]})
        await run.begin()
        await run.act()
    assert [made.arguments for made in run.client.made] == [
        {"text": "for my own account"}, *ASKED[1:],
    ]  # fmt: skip


async def test_a_review_that_was_decided_before_stays_decided(
    run: GatedRun, company: Company
) -> None:
    before = await run.review(run.one)
    await approve(run, run.one, before, *[{"id": item["id"]} for item in before["items"]])
    assert (await company.remove(run.one)).status_code == 200
    await run.begin()
    await run.act()
    assert [made.arguments for made in run.client.made] == ASKED
