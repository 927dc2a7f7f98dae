"""GET /api/events as a list: pages of stored events instead of a stream."""

from typing import Any

import httpx

from rota.platform import ids
from tests.auth.key_requests import company_of
from tests.service import Person, Service
from tests.tasks.world import create, newcomer, newcomers, patch

JSON = {"Accept": "application/json"}


async def events(person: Person, query: str = "", **headers: str) -> Any:
    response = await person.get(f"/api/events{query}", headers=JSON | headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def numbers(page: Any) -> list[int]:
    return [event["sequence"] for event in page["events"]]


async def test_pages_have_every_event_once_and_in_order(board: Service) -> None:
    person = await newcomer(board)
    for number in range(7):
        await create(person, name=f"task {number}")
    first = await events(person, "?limit=3")
    assert (numbers(first), first["total"], first["lastSequence"]) == ([1, 2, 3], 7, 7)
    event = first["events"][0]
    assert event["type"] == "task.created"
    assert event["data"]["status"] == "PENDING"
    second = await events(person, "?limit=3&after=3")
    assert (numbers(second), second["total"]) == ([4, 5, 6], 4)
    last = await events(person, "?limit=3", **{"Last-Event-ID": "6"})
    assert (numbers(last), last["total"]) == ([7], 1)
    none = await events(person, f"?after={2**53}")
    assert none == {"events": [], "total": 0, "lastSequence": 7}


async def test_a_list_can_be_limited_to_some_types(board: Service) -> None:
    person = await newcomer(board)
    for _ in range(3):
        await patch(person, (await create(person))["id"], status="COMPLETED")
    await patch(person, (await create(person))["id"], status="FAILED")
    page = await events(person, "?type=task.completed&limit=2")
    assert [event["type"] for event in page["events"]] == ["task.completed"] * 2
    assert (page["total"], page["lastSequence"]) == (3, 8)
    page = await events(person, "?type=task.completed,task.failed")
    assert page["total"] == 4
    assert (await events(person, "?type=task.unheard_of"))["total"] == 0
    for wrong in ("?type=completed", "?type=task.completed,", "?limit=0", "?after=-1", "?tpye=x"):
        response = await person.get(f"/api/events{wrong}", headers=JSON)
        assert response.status_code == 400, wrong


async def test_a_list_shows_only_what_the_caller_may_see(board: Service) -> None:
    owner, member = await board.sign_in(), await board.sign_in()
    company = await company_of(board, owner, member=member)
    account_id = ids.from_wire("acct", company)
    kinds = ("task.created", "credits.low", "mcp.changed", "key.created", "other.kind")
    async with board.owner() as connection:
        for number, kind in enumerate(kinds, 1):
            await connection.execute(
                "INSERT INTO events VALUES ($1, $2, $3, $4, NULL, '{}', now())",
                account_id,
                number,
                ids.new_uuid(),
                kind,
            )
        await connection.execute(
            "UPDATE account_heads SET last_sequence = 5 WHERE account_id = $1", account_id
        )
    selected = {"X-Service-Account": company}
    assert numbers(await events(owner, **selected)) == [1, 2, 3, 4, 5]
    shown = await events(member, "?limit=2", **selected)
    assert (numbers(shown), shown["total"], shown["lastSequence"]) == ([1, 2], 4, 5)
    body = {"name": "x", "scopes": ["tasks:read", "mcp:read"]}
    secret = (await owner.post("/api/keys", body, headers=selected)).json()["secret"]
    shown = await events(Person(board, "key", secret), "?limit=1")
    # The new key has an event, too.
    assert (numbers(shown), shown["total"], shown["lastSequence"]) == ([1], 2, 6)


async def test_the_scope_tasks_read_is_required(board: Service) -> None:
    (person,) = await newcomers(board, scopes=("mcp:read",))
    assert (await person.get("/api/events", headers=JSON)).status_code == 403


async def test_the_accept_header_chooses_between_the_list_and_the_stream(board: Service) -> None:
    person = await newcomer(board)

    async def kind(accept: str) -> str:
        # The stream does not end, so only the headers are read.
        async with board.http.stream(
            "GET", "/api/events", headers=person.auth | {"Accept": accept}
        ) as response:
            assert response.status_code == 200
            return response.headers["content-type"].partition(";")[0]

    for accept in ("application/json", "application/json, text/event-stream;q=0.5, */*"):
        assert await kind(accept) == "application/json", accept
    for accept in ("*/*", "text/event-stream", "text/event-stream, application/json;q=x;q=0.1"):
        assert await kind(accept) == "text/event-stream", accept


async def test_a_stream_can_be_limited_to_some_types(board: Service) -> None:
    person = await newcomer(board)
    await patch(person, (await create(person))["id"], status="COMPLETED")
    async with board.http.stream(
        "GET", "/api/events?after=0&type=task.completed", headers=person.auth
    ) as response:
        lines = await _first_event(response)
    assert lines == ["id: 2", "event: task.completed"]


async def _first_event(response: httpx.Response) -> list[str]:
    found: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith(("id:", "event:")):
            found.append(line)
        if len(found) == 2:
            return found
    raise AssertionError("the stream ended without an event")
