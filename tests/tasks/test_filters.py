"""Filters of lists: several statuses, times, words; and what waits for a person."""

import time
from typing import Any

import pytest

from tests.assertions import assert_invalid
from tests.service import Person, Service
from tests.tasks.world import AGENT, create, newcomer, patch, place

MANY = 100_000


async def names(person: Person, path: str = "/api/tasks", **params: Any) -> list[str]:
    """The names of the tasks that a filter finds. Checks the total."""
    page = (await person.get(path, params=params)).json()
    assert page["total"] == len(page["tasks"]), page
    return [task["name"] for task in page["tasks"]]


async def test_several_statuses_are_separated_by_commas(board: Service) -> None:
    person = await newcomer(board)
    for status in ("PENDING", "RUNNING", "FAILED", "RUNNING", "COMPLETED"):
        await create(person, name=status, status=status, projectId="p")
    for wanted in ("RUNNING", "PENDING,RUNNING", "FAILED,RUNNING,FAILED"):
        expected = [
            s for s in ("COMPLETED", "RUNNING", "FAILED", "RUNNING", "PENDING") if s in wanted
        ]
        assert await names(person, status=wanted) == expected
        assert await names(person, status=wanted, projectId="p") == expected
        assert await names(person, status=wanted, q="running") == expected.count("RUNNING") * [
            "RUNNING"
        ]
        pages = []
        for offset in range(len(expected) + 1):
            page = (await person.get(f"/api/tasks?status={wanted}&limit=1&offset={offset}")).json()
            assert page["total"] == len(expected)
            pages += [task["name"] for task in page["tasks"]]
        assert pages == expected
    repeated = await person.get("/api/tasks?status=PENDING&status=FAILED")
    assert repeated.json()["total"] == 2
    for wrong in ("PENDING,", "pending", "PENDING, RUNNING", "DONE,PENDING"):
        assert_invalid(await person.get("/api/tasks", params={"status": wrong}), "status")


async def test_times_of_creation_are_exclusive_bounds(board: Service) -> None:
    person = await newcomer(board)
    made = [await create(person, name=f"task {number}") for number in range(3)]
    at = [task["createdAt"] for task in made]
    if len(set(at)) == 3:
        assert await names(person, createdAfter=at[0]) == ["task 2", "task 1"]
        assert await names(person, createdBefore=at[2]) == ["task 1", "task 0"]
        assert await names(person, createdAfter=at[0], createdBefore=at[2]) == ["task 1"]
        assert await names(person, createdAfter=at[0], q="task") == ["task 2", "task 1"]
    assert await names(person, createdAfter="0001-01-01T00:00:00Z") == [
        "task 2",
        "task 1",
        "task 0",
    ]
    assert await names(person, createdBefore="0001-01-01T00:00:00Z") == []
    assert await names(person, createdAfter="9999-12-31T23:59:59Z") == []
    east = await names(person, createdAfter="2020-01-01T00:00:00+02:00")
    assert len(east) == 3
    for wrong in ("yesterday", "2026-01-01", "2026-01-01T00:00:00", "1"):
        for name in ("createdAfter", "createdBefore"):
            assert_invalid(await person.get("/api/tasks", params={name: wrong}), name)


async def test_words_are_found_in_name_description_and_input(board: Service) -> None:
    person, stranger = await newcomer(board), await newcomer(board)
    await create(person, name="Write the invoice", input="For Ada's laptop, model X-200.")
    await create(person, name="Chase payment", description="Unpaid INVOICES of Überlingen")
    await create(person, name="Buy laptops", agent=AGENT)
    await create(stranger, name="Another invoice for a laptop")
    for q, expected in (
        ("invoice", ["Chase payment", "Write the invoice"]),
        ("INVO", ["Chase payment", "Write the invoice"]),
        ("invoice laptop", ["Write the invoice"]),
        ("laptop", ["Buy laptops", "Write the invoice"]),
        ("überlingen", ["Chase payment"]),
        ("x-200", ["Write the invoice"]),
        ("Ada's", ["Write the invoice"]),
        ("voice", []),
        ("nothing", []),
        ("...", []),
        ("' & | ! \\ :* ( <->", []),
        ("'; DROP TABLE tasks --", []),
    ):
        assert await names(person, q=q) == expected, q
    assert await names(person, q="laptop", agent=AGENT) == ["Buy laptops"]
    assert await names(person, q="laptop", status="RUNNING") == []
    page = (await person.get("/api/tasks?q=invoice&limit=1&offset=1")).json()
    assert ([task["name"] for task in page["tasks"]], page["total"]) == (["Write the invoice"], 2)
    for wrong in ("", "x" * 256, "\0"):
        assert_invalid(await person.get("/api/tasks", params={"q": wrong}), "q")


async def test_changed_texts_are_found_by_their_new_words(board_a: Service) -> None:
    person = await newcomer(board_a)
    task = await create(person, name="old words", description="first")
    await patch(person, task["id"], name="new words", description=None)
    for q, total in (("old", 0), ("first", 0), ("new", 1), ("words", 1)):
        assert len(await names(person, q=q)) == total


@pytest.mark.timed
async def test_words_are_found_fast_among_a_hundred_thousand_tasks(board_a: Service) -> None:
    person = await newcomer(board_a)
    async with board_a.owner() as connection:
        await connection.execute(
            """
            INSERT INTO tasks (account_id, id, status, hosted, name, created_at, updated_at,
                               created_by, input)
            SELECT $1, ('0195' || lpad(to_hex(n), 8, '0') || '70008000000000000000')::uuid,
                   'COMPLETED', false, 'Report ' || n, now(), now(), $1,
                   'Every tenth mentions ' || CASE WHEN n % 10 = 0 THEN 'laptops' ELSE 'desks' END
            FROM generate_series(1, $2::integer) AS n
            """,
            person.user_id,
            MANY,
        )
        await connection.execute("ANALYZE task_words")
    for q, total, limit_s in (("77777", 1, 0.2), ("laptops", MANY // 10, 0.5), ("report", MANY, 2)):
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            page = (await person.get("/api/tasks", params={"q": q})).json()
            best = min(best, time.perf_counter() - began)
            assert page["total"] == total
        print(f"{q}: {total} matches in {best * 1000:.1f} ms")
        assert best < limit_s, q


async def test_approvals_are_listed_by_the_time_they_began_to_wait(board: Service) -> None:
    person = await newcomer(board)
    first = await create(person, name="waits last")
    second = await create(person, name="waits first", status="WAITING_APPROVAL")
    gated = await create(person, name="at a gate", agent=AGENT)
    async with board.owner() as connection:
        await place(connection, gated, "WAITING_APPROVAL", "tool")
    await patch(person, first["id"], status="WAITING_APPROVAL")

    async def waiting(**params: Any) -> list[str]:
        page = (await person.get("/api/approvals", params=params)).json()
        assert all(each["review"]["state"] == "pending" for each in page["approvals"])
        return [each["task"]["name"] for each in page["approvals"]]

    assert await waiting() == ["waits first", "at a gate", "waits last"]
    assert await waiting(limit=1, offset=1) == ["at a gate"]
    assert await waiting(agent=AGENT) == await waiting(gate="tool") == ["at a gate"]
    assert await waiting(gate="run") == await waiting(agent="nobody") == []
    assert_invalid(await person.get("/api/approvals?gate=door"), "gate")
    await person.post(f"/api/tasks/{second['id']}/approve")
    assert await waiting() == ["at a gate", "waits last"]
