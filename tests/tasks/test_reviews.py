"""Approving single items, changing their arguments, and the list of approvals."""

import asyncio
import json
from typing import Any

import pytest

from rota.composition import Composition
from rota.platform import ids
from rota.tasks import edits, review_queries
from tests.platform.hostile_schemas import doubling
from tests.platform.test_schema import children
from tests.runs.runner import until
from tests.service import Person, Service
from tests.tasks.world import (
    AGENT,
    create,
    item,
    newcomer,
    patch,
    picture,
    place,
    uuid_of,
)


async def gated(board: Service, person: Person, gate: str) -> str:
    task = await create(person, agent=AGENT)
    async with board.owner() as connection:
        await place(connection, task, "WAITING_APPROVAL", gate)
    return f"/api/tasks/{task['id']}"


async def test_a_task_continues_when_its_last_item_is_approved(board: Service) -> None:
    person = await newcomer(board)
    path = await gated(board, person, "tool")
    one = {"decisions": [{"id": "item-1", "arguments": {"title": "another"}}]}
    response = (await person.post(f"{path}/approve", one)).json()
    assert response["task"]["status"] == "WAITING_APPROVAL"
    assert response["review"]["state"] == "pending"
    first, second = response["review"]["items"]
    assert (first["decision"], first["arguments"]) == (None, {"title": "as asked for"})
    assert (second["decision"], second["arguments"]) == ("approved", {"title": "another"})
    assert second["decidedBy"]["userId"] == "user_" + person.user_id.hex
    again = await person.post(f"{path}/approve", one)
    assert (again.status_code, again.json()) == (200, response)
    other = {"decisions": [{"id": "item-1", "arguments": {"title": "a third"}}]}
    assert (await person.post(f"{path}/approve", other)).status_code == 409
    rest = (await person.post(f"{path}/approve")).json()
    assert rest["task"]["status"] == "RUNNING"
    assert rest["review"]["state"] == "approved"
    assert rest["review"]["items"][1] == second
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert [event["type"] for event in seen["events"]] == ["task.created", "task.approved"]


async def test_the_output_is_the_one_that_was_approved_or_edited(board: Service) -> None:
    person = await newcomer(board)
    path = await gated(board, person, "output")
    assert (await person.post(f"{path}/approve")).json()["task"]["output"] == "as asked for"
    path = await gated(board, person, "output")
    edit = {"decisions": [{"id": "item-0", "arguments": {"output": "better"}}]}
    assert (await person.post(f"{path}/approve", edit)).json()["task"]["output"] == "better"


async def test_rejecting_decides_all_pending_items(board: Service) -> None:
    person = await newcomer(board)
    path = await gated(board, person, "tool")
    await person.post(f"{path}/approve", {"decisions": [{"id": "item-0"}]})
    response = (await person.post(f"{path}/reject", {"resume": True})).json()
    assert [item["decision"] for item in response["review"]["items"]] == ["approved", "rejected"]


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (None, {"title": 5}),
        (None, {"title": "x" * 21}),
        (None, {}),
        ({"$ref": "http://127.0.0.1:1/schema.json"}, {"title": "x"}),
        ({"type": "nonsense"}, {"title": "x"}),
        ({"properties": {"title": {"pattern": "^[A-Z]"}}}, {"title": "x"}),
        ({"properties": {"title": {"format": "date"}}}, {"title": "yesterday"}),
        ({"properties": {"title": {"pattern": "a{99999999999999999999}"}}}, {"title": "x"}),
    ],
)
async def test_arguments_that_do_not_match_the_schema_are_refused_without_fetching_references(
    board: Service, schema: Any, arguments: Any
) -> None:
    person = await newcomer(board)
    path = await gated(board, person, "tool")
    if schema is not None:
        async with board.owner() as connection:
            await connection.execute(
                """
                UPDATE reviews SET items = jsonb_set(items, '{0,argumentsSchema}', $2::text::jsonb)
                WHERE account_id = $1
                """,
                person.user_id,
                str(schema).replace("'", '"'),
            )
    body = {"decisions": [{"id": "item-0", "arguments": arguments}]}
    response = await person.post(f"{path}/approve", body)
    assert response.status_code == 400
    [problem] = response.json()["error"]["details"]
    assert problem["field"] == "decisions.item-0.arguments"
    assert (await person.get(f"{path}/review")).json()["review"]["items"][0]["decision"] is None


async def test_an_edit_is_refused_if_another_review_opens_while_it_is_checked(
    board: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(board)
    path = await gated(board, person, "tool")
    original = edits.check

    async def check(*given: Any) -> Any:
        checked = await original(*given)
        async with board.owner() as connection:
            await connection.execute(
                "UPDATE reviews SET number = number + 1 WHERE account_id = $1", person.user_id
            )
        return checked

    monkeypatch.setattr(edits, "check", check)
    body = {"decisions": [{"id": "item-0", "arguments": {"title": "new"}}]}
    response = await person.post(f"{path}/approve", body)
    assert response.status_code == 409
    assert "review" in response.json()["error"]["details"]
    items = (await person.get(f"{path}/review")).json()["review"]["items"]
    assert [item["decision"] for item in items] == [None, None]


async def test_the_account_is_not_locked_while_an_edit_is_checked(board: Service) -> None:
    person = await newcomer(board)
    path = await gated(board, person, "tool")
    async with board.owner() as connection:
        await connection.execute(
            """
            UPDATE reviews SET items = jsonb_set(items, '{0,argumentsSchema}', $2::text::jsonb)
            WHERE account_id = $1
            """,
            person.user_id,
            json.dumps(doubling(60)),
        )
    body = {"decisions": [{"id": "item-0", "arguments": {"title": "x"}}]}
    approving = asyncio.create_task(person.post(f"{path}/approve", body))
    await until(_busy_processes)
    await create(person)
    assert not approving.done()
    response = await approving
    assert response.status_code == 400
    assert "cannot be used" in response.json()["error"]["message"]


async def _busy_processes() -> bool:
    return any(child.nice() > 0 for child in children())


async def test_pending_approvals_are_listed_oldest_first(board: Service) -> None:
    person = await newcomer(board)
    waiting = [(await create(person, status="WAITING_APPROVAL"))["id"] for _ in range(5)]
    await create(person)
    await person.post(f"/api/tasks/{waiting.pop(1)}/approve")
    found: list[str] = []
    for offset in range(0, 6, 2):
        page = (await person.get(f"/api/approvals?limit=2&offset={offset}")).json()
        assert page["total"] == 4
        assert all(one["review"]["state"] == "pending" for one in page["approvals"])
        found += [one["task"]["id"] for one in page["approvals"]]
    assert found == waiting


async def test_the_history_of_a_task_is_limited_and_its_receipt_is_complete(
    board_a: Service, parts: Composition
) -> None:
    person = await newcomer(board_a)
    task = await create(person, status="WAITING_APPROVAL")
    path = f"/api/tasks/{task['id']}"
    for number in range(101):
        assert (await patch(person, task["id"], name=f"Name {number}")).status_code == 200
    async with board_a.owner() as connection:
        # Each has 50,000 characters, which are stored twice.
        await connection.execute(
            "UPDATE reviews SET items = $2 WHERE task_id = $1 AND number > 90",
            uuid_of(task),
            json.dumps([item("item-0", "output") | {"agentSays": "x" * 100_000}]),
        )
    review = (await person.get(f"{path}/review")).json()["review"]
    assert (review["number"], review["state"]) == (102, "pending")
    assert [past["number"] for past in review["history"]] == list(range(101, 2, -1))
    assert [len(past["items"]) for past in review["history"]] == [1] * 10 + [0] * 89
    async with parts.db.read(person.user_id) as tx:
        newest, *older = await review_queries.of_task(tx, uuid_of(task))
    assert json.loads(newest.sealed)["texts"]["name"] == "Name 100"
    assert {each.sealed for each in older} == {""}
    receipt = (await person.get(f"{path}/receipt")).json()["receipt"]
    assert [each["number"] for each in receipt["decisions"]] == list(range(1, 103))
    assert [len(each["items"]) for each in receipt["decisions"]] == [0] * 90 + [1] * 12


async def test_a_decision_can_be_repeated_after_large_calls_that_rules_approved(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    path = await gated(board_a, person, "tool")
    edit = {"id": "item-0", "arguments": {"title": "another"}}
    body = {"decisions": [edit, {"id": "item-1"}]}
    assert (await person.post(f"{path}/approve", body)).status_code == 200
    async with board_a.owner() as connection:
        await connection.execute(
            """
            INSERT INTO reviews (account_id, task_id, number, run, state, gate, requested_at,
                expires_at, decided_at, decided_by, decided_with, items, sealed, digest)
            SELECT account_id, task_id, n, run, state, gate, requested_at,
                expires_at, decided_at, decided_by, decided_with || '{"via": "rule"}', $2, sealed,
                digest
            FROM reviews, generate_series(2, 13) AS n WHERE task_id = $1
            """,
            ids.from_wire("task", path.rpartition("/")[2]),
            json.dumps([item("item-2", "tool") | {"agentSays": "x" * 100_000}]),
        )
    assert (await person.post(f"{path}/approve", body)).status_code == 200
    edit["arguments"] = {"title": "a third"}
    assert (await person.post(f"{path}/approve", body)).status_code == 409
