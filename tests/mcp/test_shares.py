"""Every account has a share of the sessions, calls and checks of a process."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from prometheus_client import REGISTRY
from temporalio.testing import ActivityEnvironment

from rota.composition import Composition
from rota.dev.stack import Stack
from rota.mcp.checks import MAX_CONCURRENT_OF_ACCOUNT, MAX_OF_ACCOUNT, Checks
from rota.mcp.client import ToolClient
from rota.mcp.contracts import SweepInput
from rota.mcp.session import Address, Timeouts
from rota.mcp.sessions import Limits, Sessions
from rota.platform.egress import Egress
from rota.platform.errors import RateLimited
from rota.runs.mcp_tools import McpTools
from rota.runs.tools import Tool, ToolUnavailable
from tests.mcp import hostile
from tests.mcp.conftest import LOCAL, connect, invoke, try_to_connect
from tests.mcp.peers import Peer
from tests.runs.runner import until
from tests.service import Person, Service
from tests.tasks.world import newcomer

# Together more than the process can have open, and each more than its share.
ACCOUNTS, SLOW_SERVERS, SESSIONS = 4, 12, 40
SHARE = Limits().account_sessions


@pytest.fixture(scope="module", params=["a", "b"])
async def service(stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    async with Service.start(
        stack,
        variant=request.param,
        name=f"mcp_shares_{request.param}",
        egress_allow=LOCAL,
        mcp_sessions=SESSIONS,
        mcp_call_s=60.0,
        mcp_connect_s=8.0,
    ) as started:
        yield started


class Slow:
    """A tool server that answers calls only when it is released."""

    def __init__(self) -> None:
        self.held = 0
        self.released = asyncio.Event()

    async def call(self, message: dict[str, Any], writer: hostile.Writer) -> None:
        self.held += 1
        try:
            await self.released.wait()
        finally:
            self.held -= 1
        await hostile.answer(message, writer, {"content": [{"type": "text", "text": "ok"}]})


async def test_slow_servers_of_some_accounts_do_not_fail_the_calls_of_others(
    service: Service,
) -> None:
    slow = Slow()
    victim = await newcomer(service)
    attackers = [await newcomer(service) for _ in range(ACCOUNTS)]
    async with (
        Peer().serve() as peer,
        hostile.served(hostile.mcp_handler(call=slow.call)) as url,
    ):
        server = await connect(victim, peer.url)
        targets = [
            (attacker, await connect(attacker, f"{url}/{n}", f"slow-{n}"))
            for attacker in attackers
            for n in range(SLOW_SERVERS)
        ]
        # A busy machine can refuse a call before it needs a session.
        refused = _refused("tool_sessions") + _refused("tool_calls")
        calls = [asyncio.create_task(invoke(*target, "t")) for target in targets]

        async def held() -> int:
            return slow.held

        await until(held, lambda count: count == ACCOUNTS * SHARE, deadline_s=30)
        answers = [await invoke(victim, server, "add", {"a": 1, "b": 2}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200] * 3
        # The victim can also connect another server.
        assert (await try_to_connect(victim, f"{peer.url}?again", "again")).status_code == 201

        # The calls over the share of their account are refused, and the others still run.
        async def ended() -> int:
            return sum(call.done() for call in calls)

        over = ACCOUNTS * (SLOW_SERVERS - SHARE)
        await until(ended, lambda count: count == over, deadline_s=30)
        assert slow.held == ACCOUNTS * SHARE
        slow.released.set()
        results = [await call for call in calls]
        assert Counter(each.status_code for each in results) == {200: len(calls) - over, 429: over}
        [busy, *_] = [each for each in results if each.status_code == 429]
        assert busy.json()["error"]["code"] == "RATE_LIMITED"
        assert busy.headers["Retry-After"] == "1"
        assert _refused("tool_sessions") + _refused("tool_calls") == refused + over
        # A refused call says nothing about its server.
        found = (await attackers[0].get("/api/mcp")).json()["servers"]
        assert {each["status"] for each in found} == {"CONNECTED"}


async def test_connecting_counts_toward_the_share_of_its_account(service: Service) -> None:
    attacker, victim = await newcomer(service), await newcomer(service)
    reached = 0

    async def silent(reader: hostile.Reader, writer: hostile.Writer) -> None:
        nonlocal reached
        reached += 1
        await reader.read()

    async def count() -> int:
        return reached

    limit = Limits().account_calls
    async with Peer().serve() as peer, hostile.served(silent) as url:
        attempts = [
            asyncio.create_task(try_to_connect(attacker, f"{url}/{n}", f"silent-{n}"))
            for n in range(limit + 4)
        ]
        await until(count, lambda seen: seen >= limit, deadline_s=20)
        assert (await try_to_connect(victim, peer.url)).status_code == 201
        assert reached == limit
        statuses = Counter(each.status_code for each in await asyncio.gather(*attempts))
    assert statuses == {400: limit, 429: 4}


def _refused(share: str) -> float:
    return REGISTRY.get_sample_value("rota_share_refused_total", {"share": share}) or 0


async def test_an_account_keeps_its_share_of_open_sessions() -> None:
    """Its unused sessions are closed first, and those of other accounts stay open."""
    pool = Sessions(
        Egress(allow=LOCAL), Timeouts(5, 5), Limits(sessions=10, account_sessions=2, wait_s=0.2)
    )
    one, other = uuid4(), uuid4()
    async with Peer().serve() as peer:
        address = Address(peer.url, "streamable-http")
        kept = uuid4()
        async with pool.use(other, (kept, 1), lambda: address) as kept_session:
            pass
        for _ in range(5):
            async with pool.use(one, (uuid4(), 1), lambda: address):
                pass
        assert len(pool) == 3
        assert not kept_session.closed
        key = (uuid4(), 1)
        async with (
            pool.use(one, key, lambda: address) as session,
            pool.use(one, (uuid4(), 1), lambda: address),
        ):
            # Another call of a session that is in use needs no further place.
            async with pool.use(one, key, lambda: address) as again:
                assert again is session
            with pytest.raises(RateLimited):
                await pool.use(one, (uuid4(), 1), lambda: address).__aenter__()
            async with pool.use(other, (uuid4(), 1), lambda: address):
                pass
        assert len(pool) == 4
    await pool.aclose()


async def test_a_run_makes_the_call_again_when_its_account_is_over_its_share() -> None:
    class Busy(ToolClient):
        def __init__(self) -> None:
            pass

        async def call(self, *_: Any, **__: Any) -> Any:
            raise RateLimited("Too many calls.")

    async def before_send() -> None:
        raise AssertionError

    tools = McpTools(None, Busy())  # type: ignore[arg-type]
    tool = Tool("add", "peer", "", {}, target=(None, None))
    with pytest.raises(ToolUnavailable, match="Too many calls"):
        await tools.call(uuid4(), tool, {}, "key", before_send)


async def test_a_batch_of_checks_is_shared_between_accounts(service: Service) -> None:
    many, few = await newcomer(service), await newcomer(service)
    async with Peer().serve() as peer:
        for person, count in ((many, MAX_OF_ACCOUNT + 2), (few, 1)):
            for n in range(count):
                await connect(person, f"{peer.url}?{n}", f"server-{n}")
        async with service.owner() as connection:
            await connection.execute(
                "UPDATE mcp_servers SET check_due_at = now() - interval '1 hour'"
                " WHERE account_id = $1",
                many.user_id,
            )
            await connection.execute(
                "UPDATE mcp_servers SET check_due_at = now() WHERE account_id = $1", few.user_id
            )
        async with Composition(service.settings, pool_size=4, for_worker=True) as parts:
            client = _Counted(parts.tool_client)
            checks = Checks(parts.db, client)
            batch = SweepInput(MAX_OF_ACCOUNT + 1)
            first = await ActivityEnvironment().run(checks.sweep, batch)
            assert client.checked == {many.user_id: MAX_OF_ACCOUNT, few.user_id: 1}
            assert (first.checked, first.more) == (MAX_OF_ACCOUNT + 1, True)
            second = await ActivityEnvironment().run(checks.sweep, batch)
            assert client.checked == {many.user_id: MAX_OF_ACCOUNT + 2, few.user_id: 1}
            assert (second.checked, second.more) == (2, False)
            assert client.most_at_once == MAX_CONCURRENT_OF_ACCOUNT


class _Counted(ToolClient):
    """Counts the checks of each account, and how many of them ran at the same time."""

    def __init__(self, client: ToolClient) -> None:
        self._client = client
        self.checked: Counter[UUID] = Counter()
        self.most_at_once = 0
        self._now: Counter[UUID] = Counter()

    async def refresh(self, server: Any) -> Any:
        self.checked[server.account_id] += 1
        self._now[server.account_id] += 1
        self.most_at_once = max(self.most_at_once, *self._now.values())
        try:
            return await self._client.refresh(server)
        finally:
            self._now[server.account_id] -= 1


async def test_a_busy_account_is_told_so_through_every_operation(service: Service) -> None:
    """A check, a list of tools and a call wait for a place, then answer 429."""
    person: Person = await newcomer(service)
    slow = Slow()
    async with hostile.served(hostile.mcp_handler(call=slow.call)) as url:
        servers = [await connect(person, f"{url}/{n}", f"slow-{n}") for n in range(SHARE + 1)]
        calls = [asyncio.create_task(invoke(person, each, "t")) for each in servers[:SHARE]]

        async def held() -> int:
            return slow.held

        await until(held, lambda count: count == SHARE, deadline_s=30)
        path = f"/api/mcp/{servers[-1]['id']}"
        started = time.monotonic()
        answers = await asyncio.gather(
            person.post(f"{path}/ping"),
            person.get(f"{path}/tools"),
            invoke(person, servers[-1], "t"),
            invoke(person, servers[-1], "unknown"),
        )
        assert [each.status_code for each in answers] == [429] * 4
        # They waited at the same time, not one after the other.
        assert time.monotonic() - started < 2 * Limits().wait_s
        slow.released.set()
        assert {(await call).status_code for call in calls} == {200}
        assert (await invoke(person, servers[-1], "t")).status_code == 200
