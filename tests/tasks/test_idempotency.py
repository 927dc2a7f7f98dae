"""Requests with an Idempotency-Key take effect once, however often they are sent."""

import asyncio
import os
import random
import signal
from collections import Counter
from typing import Any
from uuid import uuid4

from rota.platform import ids
from rota.platform.crypto import Vault
from rota.platform.idempotency import seal_context
from tests.auth.key_requests import company_of
from tests.forks import Fork, forked
from tests.service import Person, Service, environment, free_port
from tests.tasks.wire import HttpResponse, Wire, wires
from tests.tasks.world import create, newcomer, patch, picture, until_waiting_for_locks

KEYS = 50
TIMES = 10
AT_ONCE = 20


class KillableService:
    """A service process that the test kills and restarts on the same port."""

    def __init__(self, service: Service) -> None:
        settings = service.settings.model_copy(update={"port": free_port()})
        self.port = settings.port
        self._environment = os.environ | environment(settings)
        self._process: Fork | None = None

    async def __aenter__(self) -> "KillableService":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def start(self) -> None:
        self._process = await forked("rota.cli", "serve", env=self._environment)

    async def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


async def send_until_response(wire: Wire, body: Any, key: str) -> HttpResponse:
    """Sends the same request until it gets a response, as a careful client does."""
    async with asyncio.timeout(180):
        while True:
            try:
                headers = {"Idempotency-Key": key}
                response = await wire.request("POST", "/api/tasks", body, headers)
            except (OSError, asyncio.IncompleteReadError):
                wire.close()
                # The restart needs the processor more than these attempts do.
                await asyncio.sleep(0.1)
            else:
                if response.status == 201:
                    return response
                assert response.status == 409, response.body
                assert "in progress" in response.json()["error"]["message"]
            await asyncio.sleep(0.02)


async def test_creations_with_a_key_happen_once_even_if_the_service_is_killed(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    work = [f"key-{number % KEYS}" for number in range(KEYS * TIMES)]
    random.Random(1).shuffle(work)
    responses: dict[str, list[HttpResponse]] = {}
    half = asyncio.Event()

    async def client(wire: Wire) -> None:
        while work:
            key = work.pop()
            response = await send_until_response(wire, {"name": key}, key)
            responses.setdefault(key, []).append(response)
            if len(work) < KEYS * TIMES * 2 // 3:
                half.set()

    async with (
        KillableService(board_a) as service,
        wires(service.port, [person.token], AT_ONCE) as connections,
        asyncio.TaskGroup() as clients,
    ):
        for wire in connections:
            clients.create_task(client(wire))
        await half.wait()
        await service.kill()
        await service.start()

    assert {key: len(found) for key, found in responses.items()} == {
        f"key-{number}": TIMES for number in range(KEYS)
    }
    async with board_a.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert sorted(task["name"] for task in seen["tasks"]) == sorted(responses)
    assert len(seen["events"]) == len(seen["idempotency_keys"]) == KEYS
    for key, found in responses.items():
        assert {response.body for response in found} == {found[0].body}, key
        fresh = [response for response in found if "idempotent-replayed" not in response.headers]
        # None if the service was killed after the commit and before the response.
        assert len(fresh) <= 1
    replayed = [a.headers.get("idempotent-replayed") for found in responses.values() for a in found]
    assert set(Counter(replayed)) == {None, "true"}


async def send(person: Person, key: str, path: str = "/api/tasks", **body: Any) -> Any:
    body = body if path.startswith("/api/tasks/") else {"name": "x", **body}
    return await person.post(path, body, headers={"Idempotency-Key": key})


async def test_a_key_used_for_another_request_is_a_conflict_and_changes_nothing(
    board: Service,
) -> None:
    person = await newcomer(board)
    first = await send(person, "k", priority=1)
    # The same request: a default that is sent, and a field that cannot be set.
    again = await send(person, "k", priority=1.0, status="PENDING", id="task_1")
    assert again.status_code == 201
    assert again.headers["idempotent-replayed"] == "true"
    assert again.content == first.content
    assert "idempotent-replayed" not in first.headers
    other = await send(person, "k", priority=2)
    assert other.status_code == 409
    assert other.json()["error"]["code"] == "CONFLICT"
    assert other.json()["error"]["details"] == {"reason": "key_reused"}
    assert (await person.get("/api/tasks")).json()["total"] == 1
    failed = await create(person, status="FAILED")
    other = await send(person, "k", f"/api/tasks/{failed['id']}/retry")
    assert other.status_code == 409
    assert (await person.get(f"/api/tasks/{failed['id']}")).json()["task"]["status"] == "FAILED"


async def test_a_replay_is_the_first_response_even_if_the_task_has_changed(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    first = await send(person, "k")
    await patch(person, first.json()["task"]["id"], status="COMPLETED")
    assert (await send(person, "k")).json()["task"]["status"] == "PENDING"


async def test_a_failed_request_does_not_use_up_its_key(board_a: Service) -> None:
    person = await newcomer(board_a)
    assert (await send(person, "k", agent="nobody")).status_code == 400
    response = await send(person, "k")
    assert response.status_code == 201
    assert "idempotent-replayed" not in response.headers


async def test_a_retry_with_a_key_retries_the_task_once(board_a: Service) -> None:
    person = await newcomer(board_a)
    task = await create(person, status="FAILED")
    path = f"/api/tasks/{task['id']}/retry"
    first = await send(person, "k", path, **{"from": "failure"})
    assert first.json()["task"]["usage"]["run"] == 2
    await patch(person, task["id"], status="FAILED")
    again = await send(person, "k", path, **{"from": "failure"})
    assert (again.status_code, again.content) == (200, first.content)
    assert (await send(person, "k", path, **{"from": "start"})).status_code == 409
    assert (await send(person, "k2", path)).json()["task"]["usage"]["run"] == 3


async def test_a_key_whose_request_is_in_progress_is_a_conflict(board_a: Service) -> None:
    person = await newcomer(board_a)
    async with board_a.owner() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE", person.user_id
        )
        first = asyncio.create_task(send(person, "k"))
        await until_waiting_for_locks(board_a, 1)
        second = await send(person, "k")
        assert second.status_code == 409
        assert second.json()["error"]["details"] == {"reason": "in_progress"}
        await transaction.rollback()
    assert (await first).status_code == 201
    assert (await send(person, "k")).content == (await first).content


async def test_a_key_expires_after_a_day(board_a: Service) -> None:
    person = await newcomer(board_a)
    first = await send(person, "k")
    await send(person, "other")
    async with board_a.owner() as connection:
        move = "UPDATE idempotency_keys SET created_at = created_at - $2::interval"
        move += " WHERE account_id = $1"
        day = "SELECT interval '23:59:50'"
        await connection.execute(move, person.user_id, await connection.fetchval(day))
        assert (await send(person, "k")).content == first.content
        await connection.execute(
            move, person.user_id, await connection.fetchval("SELECT interval '10 s'")
        )
        fresh = await send(person, "k", priority=7)
        assert fresh.status_code == 201
        assert "idempotent-replayed" not in fresh.headers
        # Expired keys are deleted with the account's next request that has a key.
        seen = await picture(connection, person.user_id)
    user = ids.to_wire("user", person.user_id)
    assert [row["key"] for row in seen["idempotency_keys"]] == [f"{user}:k"]
    assert (await send(person, "k", priority=7)).content == fresh.content


async def test_two_accounts_can_use_the_same_key(board_a: Service) -> None:
    one, other = await newcomer(board_a), await newcomer(board_a)
    key = uuid4().hex
    first = await send(one, key, priority=1)
    second = await send(other, key, priority=2)
    assert (first.status_code, second.status_code) == (201, 201)
    assert "idempotent-replayed" not in second.headers
    assert first.json()["task"]["id"] != second.json()["task"]["id"]


async def test_an_empty_or_too_long_key_is_refused(board_a: Service) -> None:
    person = await newcomer(board_a)
    for key in ("", "k" * 256):
        assert (await send(person, key)).status_code == 400
    assert (await send(person, "k" * 255)).status_code == 201


async def test_an_api_key_is_created_once_and_its_secret_is_never_stored(
    board: Service,
) -> None:
    person = await board.sign_in()
    first = await send(person, "k", "/api/keys")
    assert first.status_code == 201, first.text
    again = await send(person, "k", "/api/keys")
    assert again.json() == {"key": first.json()["key"], "secret": None}
    assert again.headers["idempotent-replayed"] == "true"
    assert (await send(person, "k", "/api/keys", name="y")).status_code == 409
    assert (await person.get("/api/keys")).json()["total"] == 1
    secret = first.json()["secret"]
    async with board.owner() as connection:
        rows = await connection.fetch("SELECT * FROM idempotency_keys")
        events = await connection.fetch("SELECT data FROM events")
    assert any(row["account_id"] == person.user_id for row in rows)
    vault = Vault(board.settings.secret_key_bytes)
    opened = [
        vault.open(row["sealed_body"], seal_context(row["account_id"], row["key"])) for row in rows
    ]
    assert secret.encode() not in b"".join(opened)
    assert secret not in repr([dict(row) for row in [*rows, *events]])


async def test_two_members_of_a_company_do_not_share_keys(board: Service) -> None:
    owner, admin = await board.sign_in(), await board.sign_in()
    company = await company_of(board, owner, admin=admin)
    headers = {"X-Service-Account": company, "Idempotency-Key": "k"}
    first = await owner.post("/api/keys", {"name": "x"}, headers=headers)
    second = await admin.post("/api/keys", {"name": "x"}, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert "idempotent-replayed" not in second.headers
    assert first.json()["key"]["id"] != second.json()["key"]["id"]
    assert first.json()["secret"] != second.json()["secret"]
