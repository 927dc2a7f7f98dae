"""Lists: filters, pages from both ends, totals, and the number of statements."""

import random
from typing import Any

import pytest

from tests.agents.conftest import counted_statements
from tests.service import Person, Service
from tests.tasks.world import AGENT, create, newcomer, newcomers, patch

TASKS = 23


@pytest.fixture(scope="session")
async def crowd(board: Service) -> tuple[Person, list[dict[str, Any]]]:
    """A person with tasks of all kinds, and these tasks, newest first."""
    person = await newcomer(board)
    chance = random.Random(7)
    made: list[dict[str, Any]] = []
    for _ in range(TASKS):
        open_tasks = [task for task in made if task["status"] in ("PENDING", "RUNNING")]
        body = {
            "status": chance.choice(["PENDING", "RUNNING", "COMPLETED", "FAILED"]),
            "agent": chance.choice([None, AGENT, "meeting-scribe"]),
            "projectId": chance.choice([None, "north", "south"]),
        }
        if open_tasks and chance.random() < 0.4:
            body["parentTaskId"] = open_tasks[0]["id"]
        made.append(await create(person, **body))
    return person, made[::-1]


async def test_pages_of_any_size_make_up_the_whole_list(
    crowd: tuple[Person, list[dict[str, Any]]],
) -> None:
    person, tasks = crowd
    for limit in (1, 7, TASKS, 100):
        found: list[dict[str, Any]] = []
        for offset in range(0, TASKS + limit, limit):
            page = (await person.get(f"/api/tasks?limit={limit}&offset={offset}")).json()
            assert page["total"] == TASKS
            found += page["tasks"]
        assert found == tasks
    beyond = (await person.get(f"/api/tasks?offset={2**31 - 1}")).json()
    assert beyond == {"tasks": [], "total": TASKS}


@pytest.mark.parametrize(
    "names",
    [
        ("status",),
        ("agent",),
        ("projectId",),
        ("parentTaskId",),
        ("status", "agent"),
        ("status", "projectId"),
        ("agent", "projectId"),
        ("status", "agent", "projectId", "parentTaskId"),
    ],
    ids="+".join,
)
async def test_filters_narrow_the_list_and_its_total(
    crowd: tuple[Person, list[dict[str, Any]]], names: tuple[str, ...]
) -> None:
    person, tasks = crowd
    fields = {"agent": "assignedAgent"}
    for sample in tasks[::4]:
        wanted = {name: sample[fields.get(name, name)] for name in names}
        if None in wanted.values():
            continue
        matching = [
            task for task in tasks if all(task[fields.get(n, n)] == v for n, v in wanted.items())
        ]
        for limit, offset in ((100, 0), (2, 1), (2, max(0, len(matching) - 2))):
            page = await person.get(
                "/api/tasks", params={**wanted, "limit": limit, "offset": offset}
            )
            assert page.json()["total"] == len(matching)
            assert page.json()["tasks"] == matching[offset : offset + limit]


async def test_a_filter_without_matches_returns_an_empty_list(
    crowd: tuple[Person, list[dict[str, Any]]],
) -> None:
    person, _ = crowd
    for query in ("agent=nobody", "projectId=none", "parentTaskId=nonsense"):
        assert (await person.get(f"/api/tasks?{query}")).json() == {"tasks": [], "total": 0}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=5.0",
        "limit=x",
        "offset=-1",
        f"offset={2**31}",
        "status=pending",
        "status=",
        "projectId=%00",
    ],
)
async def test_a_query_out_of_bounds_is_refused(board_a: Service, query: str) -> None:
    person = await newcomer(board_a)
    response = await person.get(f"/api/tasks?{query}")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "VALIDATION_ERROR"


async def test_an_account_lists_only_its_own_tasks(board: Service) -> None:
    person, stranger = await newcomer(board), await newcomer(board)
    task = await create(stranger, projectId="shared name")
    for query in ("", "?projectId=shared name", f"?parentTaskId={task['id']}"):
        assert (await person.get(f"/api/tasks{query}")).json() == {"tasks": [], "total": 0}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 2),
        ("?status=PENDING", 2),
        ("?agent=bug-triager&status=PENDING", 2),
        ("?projectId=north", 2),
        ("?agent=bug-triager&projectId=north", 2),
        ("?limit=100&offset=1", 2),
        # Past the end there are no rows to read.
        ("?offset=100000", 1),
    ],
)
async def test_a_list_of_any_length_takes_two_statements(
    crowd: tuple[Person, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    count: int,
) -> None:
    person, _ = crowd
    with counted_statements(monkeypatch) as statements:
        await person.get(f"/api/tasks{query}")
    # Workers of other tests in this process read events.
    others = ("api_key", "FROM accounts", "FROM events", "webhooks")
    data = [text for text in statements if not any(other in text for other in others)]
    assert len(data) == count, data


async def test_the_scopes_of_a_key_limit_what_it_can_do_with_tasks(board: Service) -> None:
    [reader] = await newcomers(board, scopes=("tasks:read",))
    [writer] = await newcomers(board, scopes=("tasks:write",))
    task = await create(writer, status="WAITING_APPROVAL")
    path = f"/api/tasks/{task['id']}"
    assert (await reader.get("/api/tasks")).status_code == 200
    for method, target in (
        ("POST", "/api/tasks"),
        ("PATCH", path),
        ("POST", f"{path}/approve"),
        ("POST", f"{path}/reject"),
        ("POST", f"{path}/retry"),
    ):
        response = await reader.request(method, target, json={"name": "x"})
        assert response.status_code == 403
    for target in ("/api/tasks", path, f"{path}/review", f"{path}/events", "/api/events"):
        assert (await writer.get(target)).status_code == 403
    assert (await writer.post(f"{path}/approve")).status_code == 403
    assert (await patch(writer, task["id"], name="y")).status_code == 200
