"""Accounts are spread over the cells, and no cell sees those of another."""

import asyncio
from collections import Counter

from rota.agents.sync import sync
from rota.platform import ids
from tests.assertions import assert_error
from tests.cells.world import NAMES, World, assert_refused, cell_of, started_cell, started_router
from tests.runs.runner import CATALOG
from tests.service import Person, Service
from tests.sizes import size
from tests.tasks.world import create

ACCOUNTS = size(40, 200)


async def newcomers(world: World, count: int) -> list[Person]:
    some = asyncio.Semaphore(10)

    async def one() -> Person:
        async with some:
            return await world.router.sign_in()

    return await asyncio.gather(*[one() for _ in range(count)])


async def accounts_in(service: Service) -> set[str]:
    async with service.owner() as connection:
        found = await connection.fetch("SELECT id FROM accounts")
    return {ids.to_wire("acct", row["id"]) for row in found}


async def key_of(person: Person, *scopes: str) -> str:
    body = {"name": "A program", **({"scopes": list(scopes)} if scopes else {})}
    answer = await person.post("/api/keys", body)
    assert answer.status_code == 201, answer.text
    secret: str = answer.json()["secret"]
    return secret


async def test_accounts_are_spread_and_every_table_has_only_its_own(world: World) -> None:
    people = await newcomers(world, ACCOUNTS)
    for cell in world.cells.values():
        await sync(cell.database_url, CATALOG)
    by_cell = Counter(map(cell_of, people))
    assert set(by_cell) == set(NAMES)
    assert min(by_cell.values()) > ACCOUNTS // 8
    some = asyncio.Semaphore(10)

    async def works(person: Person) -> str:
        async with some:
            key = Person(world.router, person.subject, await key_of(person), person.user_id)
            assert key.token.startswith(f"rota_{cell_of(person)}_")
            task = await create(key, agent="writer", status="WAITING_APPROVAL")
            assert (await person.get(f"/api/tasks/{task['id']}")).status_code == 200
            other = people[people.index(person) - 1]
            assert_error(await other.get(f"/api/tasks/{task['id']}"), 404, "NOT_FOUND")
            again = await world.router.sign_in(person.subject)
            assert again.user_id == person.user_id
            return str(task["id"])

    tasks = await asyncio.gather(*map(works, people))
    for name, service in world.cells.items():
        own = {ids.to_wire("acct", each.user_id) for each in people if cell_of(each) == name}
        others = {ids.to_wire("acct", each.user_id) for each in people} - own
        there = await accounts_in(service)
        assert own <= there
        assert not others & there
        foreign = {ids.from_wire("acct", each) for each in others}
        wanted = {
            ids.from_wire("task", each)
            for each, who in zip(tasks, people, strict=True)
            if cell_of(who) == name
        }
        async with service.owner() as connection:
            tables = await connection.fetch(
                "SELECT DISTINCT table_name FROM information_schema.columns JOIN pg_class ON "
                "relname = table_name WHERE column_name = 'account_id' AND "
                "table_schema = 'public' AND relkind IN ('r', 'p') AND NOT relispartition"
            )
            assert len(tables) > 20
            for row in tables:
                seen = await connection.fetchval(
                    f'SELECT count(*) FROM "{row["table_name"]}" WHERE account_id = ANY($1)',
                    list(foreign),
                )
                assert seen == 0, row["table_name"]
            found = await connection.fetch("SELECT id FROM tasks WHERE id = ANY($1)", list(wanted))
        assert {row["id"] for row in found} == wanted


async def test_a_credential_is_refused_by_every_other_cell(world: World) -> None:
    person = await world.person_of("east")
    key = await key_of(person)
    west = world.cells["west"]
    for credential in (person.token, key):
        stranger = Person(west, person.subject, credential, person.user_id)
        for answer in (
            await stranger.get("/api/me"),
            await stranger.get("/api/tasks"),
            await stranger.post("/api/tasks", {"name": "A task", "agent": "writer"}),
        ):
            assert_error(answer, 421, "MISDIRECTED_REQUEST")
            assert "cell east, and this is cell west" in answer.json()["error"]["message"]
    refresh = await west.http.post("/api/auth/refresh", headers=person.auth)
    assert_error(refresh, 421, "MISDIRECTED_REQUEST")
    # The cell itself, and the router, serve it.
    home = Person(world.cells["east"], person.subject, key, person.user_id)
    assert (await home.get("/api/me")).status_code == 200
    refreshed = await world.router.http.post("/api/auth/refresh", headers=person.auth)
    assert cell_of(Person(world.router, "", refreshed.json()["token"])) == "east"


async def test_a_changed_name_opens_no_other_cell(world: World) -> None:
    person = await world.person_of("east")
    key = await key_of(person)
    forged = key.replace("rota_east_", "rota_west_")
    answer = await Person(world.router, "", forged).get("/api/me")
    assert_error(answer, 401, "AUTHENTICATION_ERROR")
    unknown = key.replace("rota_east_", "rota_north_")
    answer = await Person(world.router, "", unknown).get("/api/me")
    # Another router may know it. Who signed in again through this one would be a new person.
    assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
    assert answer.headers["retry-after"]
    assert "names the cell north" in answer.json()["error"]["message"]


async def test_a_third_cell_moves_nobody_and_gets_new_accounts(world: World) -> None:
    people = await newcomers(world, 12)
    public_url = world.router.settings.public_url
    urls = dict.fromkeys((*NAMES, "south"), "http://127.0.0.1:1")
    async with started_cell(
        world.stack, "south", public_url, variant=world.cells["east"].variant, cells=urls
    ) as south:
        cells = {**world.cells, "south": south}
        async with started_router(world.stack, cells) as (router, _):
            for person in people:
                again = await router.sign_in(person.subject)
                assert (again.user_id, cell_of(again)) == (person.user_id, cell_of(person))
                assert (await Person(router, "", person.token).get("/api/me")).status_code == 200
            assert await accounts_in(south) == set()
            new: list[str] = []
            while "south" not in new:
                new.append(cell_of(await router.sign_in()))
                assert len(new) < 60
        # A router that does not know all cells cannot tell who is new.
        async with started_router(world.stack, {"south": south}) as (router, _):
            token = await router.id_token("a-newcomer-of-an-old-router")
            answer = await router.http.post("/api/auth/session", json={"idToken": token})
            assert_error(answer, 503, "SERVICE_UNAVAILABLE")
            assert "different cells in ROTA_CELLS" in answer.json()["error"]["message"]
        # Cells that are full keep their people, and get no new ones.
        async with started_router(world.stack, cells, cells_full=NAMES) as (router, _):
            assert {cell_of(await router.sign_in()) for _ in range(6)} == {"south"}
            again = await router.sign_in(people[0].subject)
            assert cell_of(again) == cell_of(people[0])
            # Also if the client chooses one.
            token = await router.id_token("a-newcomer-who-chooses-a-full-cell")
            answer = await router.http.post(
                "/api/auth/session", json={"idToken": token}, headers={"Rota-Cell": "east"}
            )
            assert_refused(answer, 409, "CONFLICT")
            assert "accepts no new accounts" in answer.json()["error"]["message"]


async def test_a_cell_that_is_down_affects_only_its_own_people(world: World) -> None:
    people = {name: [await world.person_of(name) for _ in range(3)] for name in NAMES}
    async with started_router(
        world.stack, {"east": world.cells["east"], "west": "http://127.0.0.1:1"}
    ) as (router, _):
        for person in people["east"]:
            for _ in range(20):
                assert (await Person(router, "", person.token).get("/api/me")).status_code == 200
            again = await router.sign_in(person.subject)
            assert again.user_id == person.user_id
        for person in people["west"]:
            answer = await Person(router, "", person.token).get("/api/me")
            assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
            assert "Cell west" in answer.json()["error"]["message"]
            # Nobody gets a second account because the first one is not reachable.
            token = await router.id_token(person.subject)
            answer = await router.http.post("/api/auth/session", json={"idToken": token})
            assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
            assert answer.headers["retry-after"]
        ready = await router.http.get("/health/ready")
        assert ready.status_code == 200
        assert ready.json() == {
            "status": "degraded",
            "checks": {"cells": "ok", "east": "ok", "west": "failed: CellFailed"},
        }
        assert (await router.http.get("/api/auth/config")).status_code == 200
        metrics = (await router.http.get("/metrics")).text
        assert 'rota_router_failures_total{cell="west",reason="connect"}' in metrics
    async with started_router(
        world.stack, {"east": "http://127.0.0.1:1", "west": world.cells["west"]}
    ) as (router, _):
        # Pages come from any cell.
        assert (await router.http.get("/api/auth/config")).status_code == 200
