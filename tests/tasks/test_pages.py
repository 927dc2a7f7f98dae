"""Pages have at most about 1 MiB, however long the texts of their tasks are."""

import json
from typing import Any

import pytest

from rota.tasks.pages import CUT, PAGE_BYTES
from tests.assertions import assert_error
from tests.service import Person, Service
from tests.tasks.world import create, newcomer, patch, place, uuid_of

TASKS = 40
MAX_TEXT = 50_000
# Texts whose JSON is as long as they are, three times and six times as long.
ALPHABETS = ("a", "字", "\x01")


async def bulky(board: Service, alphabet: str = "a", count: int = TASKS) -> Person:
    """A person whose tasks have the longest texts."""
    person = await newcomer(board)
    text = alphabet * MAX_TEXT
    first = await create(person, status="RUNNING", description=text, input=text, output=text)
    await add_actions(person, first)
    async with board.owner() as owner:
        await owner.execute(
            """
            INSERT INTO tasks (account_id, id, status, hosted, name, created_at, updated_at,
                created_by, description, input, output, actions)
            SELECT account_id, gen_random_uuid(), status, hosted, name, created_at, updated_at,
                created_by, description, input, output, actions
            FROM tasks, generate_series(2, $2) WHERE account_id = $1
            """,
            person.user_id,
            count,
        )
        await owner.execute(
            "UPDATE account_heads SET running = $2 WHERE account_id = $1", person.user_id, count
        )
    return person


async def add_actions(person: Person, task: dict[str, Any]) -> None:
    """Fills the log: 131 entries of 2,000 bytes fit into it."""
    for count in (100, 31):
        response = await patch(person, task["id"], actions=["a" * 2_000] * count)
        assert response.status_code == 200, response.text


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=["ascii", "wide", "control"])
async def test_a_page_of_long_tasks_is_cut_and_names_what_is_cut(
    board: Service, alphabet: str
) -> None:
    person = await bulky(board, alphabet)
    response = await person.get("/api/tasks")
    assert len(response.content) < 1.1 * PAGE_BYTES
    page = response.json()
    assert (len(page["tasks"]), page["total"]) == (TASKS, TASKS)
    for task in page["tasks"]:
        assert task["truncated"] == ["description", "input", "output", "actions"]
        assert 0 < len(task["input"]) <= CUT
        assert set(task["input"]) == {alphabet}
    whole = (await person.get(f"/api/tasks/{page['tasks'][0]['id']}")).json()["task"]
    assert whole["truncated"] == []
    assert [len(whole[name]) for name in ("description", "input", "output")] == [MAX_TEXT] * 3
    assert len(whole["metadata"]["actions"]) == 131


async def test_a_page_that_fits_is_whole(board: Service) -> None:
    person = await bulky(board, count=2)
    page = (await person.get("/api/tasks")).json()
    for task in page["tasks"]:
        assert task["truncated"] == []
        assert len(task["output"]) == MAX_TEXT
        assert len(task["metadata"]["actions"]) == 131


async def test_short_texts_stay_whole_beside_long_ones(board: Service) -> None:
    person = await bulky(board)
    task = await create(person, description="b" * CUT, actions=["one", "two"])
    page = (await person.get("/api/tasks?limit=50")).json()["tasks"]
    [found] = [each for each in page if each["id"] == task["id"]]
    assert found == task
    found = (await person.get("/api/tasks?q=A&limit=50")).json()["tasks"]
    assert sum(bool(each["truncated"]) for each in found) == len(found) - 1 > 0


async def test_long_tasks_that_a_client_runs_are_listed_while_they_wait(board: Service) -> None:
    person = await newcomer(board)
    text = "a" * MAX_TEXT
    for _ in range(12):
        await create(person, status="WAITING_APPROVAL", description=text, input=text)
    response = await person.get("/api/approvals?limit=100")
    assert len(response.content) < 1.1 * PAGE_BYTES
    approvals = response.json()["approvals"]
    assert [each["truncated"] for each in approvals] == [True] * 12
    assert {each["review"]["summary"] for each in approvals} == {"Approve the task “A task”"}


async def test_a_cut_text_cannot_be_sent_back(board: Service) -> None:
    person = await bulky(board)
    task = (await person.get("/api/tasks")).json()["tasks"][0]
    response = await person.request("PATCH", f"/api/tasks/{task['id']}", json=task)
    assert_error(response, 400, "VALIDATION_ERROR")
    assert response.json()["error"]["details"][0]["field"] == "description"
    whole = (await person.get(f"/api/tasks/{task['id']}")).json()["task"]
    assert len(whole["description"]) == MAX_TEXT
    response = await person.request("PATCH", f"/api/tasks/{task['id']}", json=whole)
    assert response.status_code == 200


async def test_the_action_log_has_a_longest_size(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person)
    await add_actions(person, task)
    response = await patch(person, task["id"], actions=["字" * 100])
    assert_error(response, 400, "VALIDATION_ERROR")
    assert "262144" in response.text
    assert (await patch(person, task["id"], priority=3)).status_code == 200
    body = {"name": "x", "actions": ["字" * 2_000] * 50}
    assert_error(await person.post("/api/tasks", body), 400, "VALIDATION_ERROR")


async def test_a_page_of_long_approvals_is_cut_and_says_so(board: Service) -> None:
    person = await newcomer(board)
    text = "a" * MAX_TEXT
    gated = [
        await create(
            person, agent="bug-triager", status="WAITING_APPROVAL", input=text, description=text
        )
        for _ in range(5)
    ]
    tooled = [await create(person, input=text) for _ in range(15)]
    short = await create(person, status="WAITING_APPROVAL", input="short")
    schema = {"type": "object", "description": "b" * 400_000}
    async with board.owner() as owner:
        for task in tooled:
            await place(owner, task, "WAITING_APPROVAL", "tool")
            await owner.execute(
                """
                UPDATE reviews SET items = jsonb_set(items, '{0,argumentsSchema}', $2)
                WHERE task_id = $1
                """,
                uuid_of(task),
                json.dumps(schema),
            )
    response = await person.get("/api/approvals?limit=100")
    assert len(response.content) < 1.2 * PAGE_BYTES
    found = {each["task"]["id"]: each for each in response.json()["approvals"]}
    assert len(found) == 21
    for task in gated:
        approval = found[task["id"]]
        assert approval["truncated"]
        assert len(approval["review"]["work"]["input"]) == CUT
        assert approval["review"]["summary"].startswith("Start the task")
        review = (await person.get(f"/api/tasks/{task['id']}/review")).json()["review"]
        assert len(review["work"]["input"]) == MAX_TEXT
        assert review["digest"] == approval["review"]["digest"]
    for task in tooled:
        approval = found[task["id"]]
        assert approval["truncated"]
        first, second = approval["review"]["items"]
        assert first["argumentsSchema"] is None
        assert first["arguments"] == second["arguments"] == {"title": "as asked for"}
        assert second["argumentsSchema"] is not None
    assert not found[short["id"]]["truncated"]
    assert found[short["id"]]["review"]["summary"] == "Approve the task “A task”"
