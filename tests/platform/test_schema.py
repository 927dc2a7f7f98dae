"""A schema of a tool server checks arguments, and can do nothing else."""

import asyncio
import io
import json
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import psutil
import pytest

from rota.platform import schema, schema_process
from rota.platform.errors import RateLimited, Unavailable
from rota.platform.schema import SchemaChecks, Verdict
from tests.platform.hostile_schemas import FAST, UNUSABLE

ME = uuid4()
# A process has this much in all: see schema_process.py. A check can take this long, on any machine.
MAX_S = 8


_others: set[int] = set()


@pytest.fixture
async def checks(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SchemaChecks]:
    # An account hardly waits after a slow check.
    monkeypatch.setattr(schema, "SLOW_SHARE", 1_000)
    # Services of other tests in this process can have processes too.
    _others.update(child.pid for child in children())
    started = SchemaChecks()
    yield started
    await started.aclose()


async def problems(
    checks: SchemaChecks, wanted: Any, value: Any, account_id: UUID = ME
) -> list[str]:
    verdict = await checks.check(account_id, wanted, value)
    assert verdict.usable, verdict
    return verdict.problems


def children() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        try:
            is_ours = child.pid not in _others
            if is_ours and any("schema_process" in part for part in child.cmdline()):
                found.append(child)
        except psutil.Error:
            pass
    return found


def niceness() -> list[int]:
    found = []
    for child in children():
        with suppress(psutil.NoSuchProcess):
            found.append(child.nice())
    return found


async def test_each_problem_is_reported_with_its_path(checks: SchemaChecks) -> None:
    wanted = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["m"]}
    assert await problems(checks, wanted, {"n": 1, "m": 2}) == []
    assert sorted(await problems(checks, wanted, {"n": "x"})) == [
        '"m" is a required property',
        'n: "x" is not of type "integer"',
    ]
    assert len(await problems(checks, {"items": {"type": "null"}}, [1] * 100)) == 20


async def test_patterns_and_formats_are_checked(checks: SchemaChecks) -> None:
    wanted = {
        "properties": {
            "code": {"pattern": "^[A-Z]{3}-\\d+$"},
            "to": {"format": "email"},
            # As zod writes it: look-around needs the engine that backtracks.
            "from": {"pattern": "^(?!\\.)(?!.*\\.\\.)[a-z.]+@([a-z]+\\.)+[a-z]{2,}$"},
            "twice": {"pattern": "^(a+)-\\1$"},
        },
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }
    right = {"code": "ABC-1", "to": "a@b.example", "from": "a.b@c.example", "twice": "aa-aa"}
    assert await problems(checks, wanted, right | {"x-a": "b"}) == []
    wrong = {"code": "abc", "to": "nobody", "from": "a..b@c.example", "twice": "aa-a", "x-a": 1}
    found = await problems(checks, wanted, wrong | {"y": 1})
    assert sorted(each.split(":")[0].split(" (")[0] for each in found) == [
        "Additional properties are not allowed",
        "code",
        "from",
        "to",
        "twice",
        "x-a",
    ]


async def test_integers_of_any_size_are_exact(checks: SchemaChecks) -> None:
    limit = 2**200
    wanted = {"properties": {"n": {"type": "integer", "maximum": limit, "multipleOf": 2}}}
    assert await problems(checks, wanted, {"n": limit}) == []
    assert await problems(checks, wanted, {"n": limit + 2}) == [
        f"n: {limit + 2} is greater than the maximum of {limit}"
    ]
    assert await problems(checks, wanted, {"n": limit - 1}) == [
        f"n: {limit - 1} is not a multiple of 2"
    ]
    assert await problems(checks, {"multipleOf": 0.01}, 10**400) == []
    assert await problems(checks, {"const": limit}, float(limit) * 2) != []


@pytest.mark.timed
@pytest.mark.parametrize("name", UNUSABLE)
async def test_an_unusable_schema_is_reported_as_the_problem(
    checks: SchemaChecks, name: str
) -> None:
    started = time.monotonic()
    verdict = await checks.check(ME, *UNUSABLE[name])
    assert not verdict.usable
    [problem] = verdict.problems
    assert problem.startswith("the tool's schema cannot be used: ")
    assert len(problem) < 300
    assert time.monotonic() - started < MAX_S
    # The next check works.
    assert await problems(checks, {"type": "string"}, "a") == []


@pytest.mark.timed
@pytest.mark.parametrize("name", FAST)
async def test_a_schema_that_is_meant_to_be_slow_is_checked_at_once(
    checks: SchemaChecks, name: str
) -> None:
    await checks.check(ME, {}, {})
    started = time.monotonic()
    assert (await checks.check(ME, *FAST[name])).usable
    assert time.monotonic() - started < 1


async def test_nothing_is_fetched(checks: SchemaChecks) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        for wanted in ({"$ref": url}, {"$schema": url}, {"$id": url, "$dynamicRef": f"{url}/x#a"}):
            await checks.check(ME, wanted, {})
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.timed
async def test_the_event_loop_is_free_and_the_process_does_not_grow(checks: SchemaChecks) -> None:
    await checks.check(ME, {}, {})
    before = psutil.Process().memory_info().rss
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - started)

    watching = asyncio.create_task(watch())
    for name in ("doubling", "many large patterns"):
        assert not (await checks.check(ME, *UNUSABLE[name])).usable
    assert (await checks.check(ME, *FAST["unique items"])).usable
    watching.cancel()
    assert longest < 0.3
    assert psutil.Process().memory_info().rss - before < 50 * 1024 * 1024


@pytest.mark.timed
async def test_an_account_that_checks_hostile_schemas_does_not_delay_others(
    checks: SchemaChecks,
) -> None:
    hostile = [asyncio.create_task(checks.check(ME, *UNUSABLE["doubling"])) for _ in range(4)]
    await asyncio.sleep(0)
    other = uuid4()
    await problems(checks, {}, {}, other)
    for _ in range(20):
        assert await problems(checks, {"type": "string"}, "a", other) == []
    # They take a second of processor time each, one after the other, with a low priority.
    assert not hostile[-1].done()
    async with asyncio.timeout(30):
        while schema.LOW_PRIORITY not in niceness():
            await asyncio.sleep(0.01)
    assert len(niceness()) <= 2
    assert [each.usable for each in await asyncio.gather(*hostile)] == [False] * 4


@pytest.mark.timed
async def test_an_account_with_a_slow_check_gets_a_process_of_low_priority(
    checks: SchemaChecks,
) -> None:
    assert not (await checks.check(ME, *UNUSABLE["doubling"])).usable
    assert await problems(checks, {}, {}) == []
    [slow] = children()
    # It is used again, but for such accounts only.
    assert await problems(checks, {}, {}) == []
    assert await problems(checks, {}, {}, uuid4()) == []
    assert slow in children()
    assert sorted(niceness()) == [os.getpriority(os.PRIO_PROCESS, 0), schema.LOW_PRIORITY]


async def test_an_account_waits_after_a_slow_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "SLOW_SHARE", 0.2)
    checks, other = SchemaChecks(), uuid4()
    try:
        assert not (await checks.check(ME, *UNUSABLE["doubling"])).usable
        started = time.monotonic()
        wait_s = checks._pace.due_in(ME)
        assert 0 < wait_s <= schema_process.MAX_CPU_S / 0.2
        assert await problems(checks, {}, {}, other) == []
        assert checks._pace.due_in(other) == 0
        assert await problems(checks, {}, {}) == []
        assert time.monotonic() - started > wait_s - 0.1
        # What is cheap costs nothing.
        assert checks._pace.due_in(ME) == 0
        schema_of, _ = UNUSABLE["doubling"]
        assert not (await checks.check(ME, schema_of, {"n": 1})).usable
        monkeypatch.setattr(schema, "MAX_WAIT_S", 0.1)
        with pytest.raises(RateLimited, match="too much processor time") as refused:
            await checks.check(ME, {}, {})
        assert refused.value.headers is not None
        assert 1 <= int(refused.value.headers["Retry-After"]) <= 5
    finally:
        await checks.aclose()


async def test_a_slow_check_is_not_repeated(checks: SchemaChecks) -> None:
    first = await checks.check(ME, *UNUSABLE["doubling"])
    due_in = checks._pace.due_in(ME)
    assert due_in > 0
    started = time.monotonic()
    assert await checks.check(ME, *UNUSABLE["doubling"]) == first
    assert time.monotonic() - started < due_in / 2
    # Nothing else is known from it: neither of another value, nor for another account.
    assert (await checks.check(uuid4(), *UNUSABLE["doubling"])) == first
    assert len(checks._found._items) == 2


async def test_an_account_with_too_many_checks_has_to_wait(
    checks: SchemaChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MAX_WAITING", 3)
    results = await asyncio.gather(
        *[checks.check(ME, {}, {}) for _ in range(6)], return_exceptions=True
    )
    assert [type(each) for each in results] == [Verdict] * 4 + [RateLimited] * 2
    monkeypatch.setattr(schema, "MAX_WAIT_S", 0.1)
    slow = asyncio.create_task(checks.check(ME, *UNUSABLE["doubling"]))
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await checks.check(ME, {}, {})
    assert await problems(checks, {}, {}, uuid4()) == []
    assert not (await slow).usable
    assert await problems(checks, {}, {}) == []


async def test_a_process_that_has_ended_is_replaced(checks: SchemaChecks) -> None:
    assert await problems(checks, {}, {}) == []
    [child] = children()
    child.kill()
    assert await problems(checks, {}, {}) == []
    [child] = children()
    child.kill()
    async with asyncio.timeout(10):
        while not checks._fast._idle[0].ended:
            await asyncio.sleep(0.01)
    assert await problems(checks, {}, {}) == []
    assert len(children()) == 1
    await checks.aclose()
    assert children() == []
    with pytest.raises(Unavailable):
        await checks.check(ME, {}, {})


async def test_a_cancelled_check_leaves_no_process_behind(checks: SchemaChecks) -> None:
    check = asyncio.create_task(checks.check(ME, *UNUSABLE["doubling"]))
    async with asyncio.timeout(10):
        while not children():
            await asyncio.sleep(0.01)
    check.cancel()
    with pytest.raises(asyncio.CancelledError):
        await check
    assert children() == []
    assert await problems(checks, {}, {}) == []


async def test_the_processes_get_no_environment(checks: SchemaChecks) -> None:
    os.environ["ROTA_TEST_SECRET"] = "in the environment"
    try:
        await checks.check(ME, {}, {})
        [child] = children()
        assert "ROTA_TEST_SECRET" not in child.environ()
    finally:
        del os.environ["ROTA_TEST_SECRET"]


async def test_a_process_that_cannot_start_is_no_fault_of_the_schema(
    checks: SchemaChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(Unavailable):
        await checks.check(ME, {}, {})
    monkeypatch.setattr("sys.executable", "/bin/true")
    with pytest.raises(Unavailable):
        await checks.check(ME, {}, {})
    monkeypatch.undo()
    assert await problems(checks, {}, {}) == []


async def test_a_value_that_is_too_deep_is_not_checked(checks: SchemaChecks) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert not (await checks.check(ME, {}, deep)).usable


def test_requests_are_answered_until_the_service_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself, in this process."""

    def request(wanted: Any, value: Any) -> bytes:
        raw = json.dumps(wanted).encode(), json.dumps(value).encode()
        return schema_process.LENGTHS.pack(*map(len, raw)) + b"".join(raw)

    responses = io.BytesIO()
    monkeypatch.setattr(schema_process, "MAX_KEPT_MEMORY", 0)
    schema_process.serve(
        io.BytesIO(
            request({"type": "string"}, "a")
            + request({"type": "string"}, 1)
            + request({"pattern": "^(?:(a+)|b\\1)+c\\1$"}, "a" * 3_000)
            + request({"properties": 1}, {})
            + b"half"
        ),
        responses,
    )
    raw = responses.getvalue()
    assert raw[:1] == schema_process.READY
    found, raw = [], raw[1:]
    while raw:
        [length] = schema_process.LENGTH.unpack(raw[:4])
        found.append(json.loads(raw[4 : 4 + length]))
        raw = raw[4 + length :]
    assert [found[0][:2], found[0][3]] == [["ok", []], False]
    assert [found[1][:2], found[1][3]] == [["invalid", ['1 is not of type "string"']], False]
    assert all(0 <= cpu_s < 1 for _, _, cpu_s, _ in found)
    assert [outcome for outcome, *_ in found[2:]] == ["unusable", "unusable"]
