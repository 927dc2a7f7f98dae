"""One cell that is down in any way: it refuses connections, hangs, or answers with errors."""

from collections.abc import AsyncIterator

import pytest

from rota.cells import fetching, router
from rota.cells.cell import Cell, healthy_first
from rota.dev.stack import Stack
from rota.platform import ids
from tests.auth.browser import Browser
from tests.cells.fake_cell import OK, Arrived, FakeCell
from tests.cells.test_sign_in import accounts_of, token_of
from tests.cells.world import World, assert_refused, cell_of, started_router
from tests.service import Service


async def hang(arrived: Arrived) -> None:
    await arrived.closed()


async def fail(arrived: Arrived) -> None:
    await arrived.body()
    arrived.writer.write(OK.replace(b"200 OK", b"503 Service Unavailable"))


@pytest.fixture(params=[hang, fail], ids=["hangs", "fails"])
async def broken(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FakeCell]:
    monkeypatch.setattr(fetching.ask, "__kwdefaults__", {"within_s": 0.5})
    monkeypatch.setattr(router, "ANSWER_S", 0.5)
    async with FakeCell(handle=request.param).serving() as cell:
        yield cell


@pytest.fixture
async def half(world: World, broken: FakeCell) -> AsyncIterator[Service]:
    """A router whose first cell is broken. `west` works."""
    async with started_router(world.stack, {"east": broken.url, "west": world.cells["west"]}) as (
        started,
        _,
    ):
        yield started


async def test_a_router_is_ready_if_any_cell_is(half: Service) -> None:
    ready = await half.http.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert ready.json()["checks"]["cells"] == "ok"
    assert ready.json()["checks"]["east"] != "ok"


async def test_pages_come_from_a_cell_that_works(half: Service, broken: FakeCell) -> None:
    for _ in range(3):
        assert (await half.http.get("/api/auth/config")).status_code == 200
    # It is not asked again each time.
    assert len(broken.arrived) == 1


async def test_people_of_other_cells_sign_in_and_new_people_do_not(
    world: World, half: Service
) -> None:
    for _ in range(3):
        person = await world.person_of("west")
        again = await half.sign_in(person.subject)
        assert again.user_id == person.user_id
    newcomer = f"new-{ids.new_uuid().hex}"
    token = await half.id_token(newcomer)
    for headers in ({}, {"Rota-Cell": "west"}, {"Rota-Cell": "east"}, {"Cookie": "rota-cell=west"}):
        refused = await half.http.post(
            "/api/auth/session", json={"idToken": token}, headers=headers
        )
        assert_refused(refused, 503, "SERVICE_UNAVAILABLE")
        assert refused.headers["retry-after"]
    assert await accounts_of(world, newcomer) == []
    # Later, the same token works.
    answer = await world.router.http.post("/api/auth/session", json={"idToken": token})
    assert answer.status_code == 200


async def test_a_code_is_exchanged_by_a_cell_that_works(
    world: World, half: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world.person_of("west")
    monkeypatch.setattr("rota.cells.sign_in.CODE_S", 2.0)
    async with Browser(half) as browser:
        code = await browser.code(email=f"{person.subject}@example.test")
        answer = await browser.exchange(code, cookie=False)
        assert cell_of(token_of(answer)) == "west"


async def test_if_no_cell_works_one_says_why(stack: Stack) -> None:
    async with FakeCell(handle=fail).serving() as one, FakeCell(handle=fail).serving() as two:
        cells = {"east": one.url, "west": two.url}
        async with started_router(stack, cells) as (service, _):
            token = await service.id_token("nobody-works")
            for path, body in (
                ("/api/auth/session", {"idToken": token}),
                ("/api/auth/session", {"idToken": "x"}),
                ("/api/auth/code", {"code": "x"}),
            ):
                answer = await service.http.post(path, json=body)
                assert (answer.status_code, answer.headers["x-own"]) == (503, "yes")
            page = await service.http.get("/")
            assert (page.status_code, page.headers["x-own"]) == (503, "yes")


async def test_keys_that_may_be_missing_are_not_cached(world: World, half: Service) -> None:
    partial = await half.http.get("/.well-known/jwks.json")
    assert (partial.status_code, partial.headers["cache-control"]) == (200, "no-store")
    whole = await world.router.http.get("/.well-known/jwks.json")
    assert "cache-control" not in whole.headers


def test_a_cell_that_failed_is_asked_last_for_a_while() -> None:
    one, two = (Cell(name, "http://127.0.0.1:1") for name in ("one", "two"))
    assert healthy_first((one, two)) == [one, two]
    one.suspect()
    assert healthy_first((one, two)) == [two, one]
    one.suspect(failed=False)
    assert healthy_first((one, two)) == [one, two]
