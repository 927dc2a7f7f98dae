"""Host names are looked up at a real name server, and slow names do not delay others."""

import asyncio
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from uuid import uuid4

import httpx2
import pytest

from rota.platform import resolver as resolvers
from rota.platform.egress import Egress, EgressRefused, ServerBounds
from rota.platform.errors import RateLimited
from rota.platform.resolver import Resolver

ADDRESS = "93.184.215.14"
A, AAAA = 1, 28


class NameServer(asyncio.DatagramProtocol):
    """Answers every name with one address: `silent…` never, `unknown…` with an error, and `slow…`
    some seconds after the first query, because it asks another server only once."""

    def __init__(self, slow_s: float) -> None:
        self.slow_s = slow_s
        # Queries for IPv4 addresses, by name.
        self.queries: Counter[str] = Counter()
        # When each name is known, on the clock of the loop.
        self._known_at: dict[str, float] = {}
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name, kind, question = _question(data)
        self.queries[name] += kind == A
        if name.startswith("silent"):
            return
        loop = asyncio.get_running_loop()
        delay_s = self.slow_s if name.startswith("slow") else 0
        at = self._known_at.setdefault(name, loop.time() + delay_s)
        answer = _answer(data, question, kind, known=not name.startswith("unknown"))
        loop.call_at(at, self._send, answer, addr)

    def _send(self, answer: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.sendto(answer, addr)


def _question(data: bytes) -> tuple[str, int, bytes]:
    """The name and the type of a query, and its question section."""
    labels, at = [], 12
    while length := data[at]:
        labels.append(data[at + 1 : at + 1 + length].decode())
        at += 1 + length
    (kind,) = struct.unpack("!H", data[at + 1 : at + 3])
    return ".".join(labels).lower(), kind, data[12 : at + 5]


def _answer(data: bytes, question: bytes, kind: int, *, known: bool) -> bytes:
    answers = b""
    if known and kind == A:
        # A pointer to the name, type, class, a TTL of zero, and the address.
        answers = struct.pack("!HHHIH", 0xC00C, A, 1, 0, 4) + socket.inet_aton(ADDRESS)
    flags = 0x8180 if known else 0x8183
    return data[:2] + struct.pack("!HHHHH", flags, 1, bool(answers), 0, 0) + question + answers


async def asked(server: NameServer, prefix: str, count: int) -> None:
    """Waits until the server has got queries for this many names."""
    async with asyncio.timeout(5):
        while sum(name.startswith(prefix) for name in server.queries) < count:
            await asyncio.sleep(0.005)


@asynccontextmanager
async def name_server(slow_s: float = 2.0) -> AsyncIterator[tuple[NameServer, Resolver]]:
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(slow_s), local_addr=("127.0.0.1", 0)
    )
    port = transport.get_extra_info("sockname")[1]
    resolver = Resolver([f"127.0.0.1:{port}"])
    try:
        yield server, resolver
    finally:
        await resolver.close()
        transport.close()


@pytest.mark.timed
async def test_slow_names_do_not_delay_others() -> None:
    async with name_server() as (server, resolver):
        await resolver("first.test", 80)
        slow = [asyncio.create_task(resolver(f"slow-{n}.test", 80)) for n in range(24)]
        await asked(server, "slow", 24)
        started = time.monotonic()
        assert list(await resolver("fast.test", 80)) == [ADDRESS]
        assert list(await resolver("localhost", 80))
        took_s = time.monotonic() - started
        assert not any(task.done() for task in slow)
        # A slow name is still found.
        assert set(map(tuple, await asyncio.gather(*slow))) == {(ADDRESS,)}
        assert took_s < 0.3, took_s


async def test_the_same_name_is_looked_up_once_at_a_time() -> None:
    async with name_server(slow_s=0.15) as (server, resolver):
        found = await asyncio.gather(*[resolver("Slow.test", 80) for _ in range(20)])
        assert found == [[ADDRESS]] * 20
        assert server.queries["slow.test"] == 1
        # A caller that gives up does not end the look-up for the others.
        first = asyncio.create_task(resolver("slow-too.test", 80))
        second = asyncio.create_task(resolver("slow-too.test", 80))
        await asked(server, "slow-too", 1)
        first.cancel()
        assert await second == [ADDRESS]


async def test_a_look_up_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolvers, "DEADLINE_S", 0.2)
    async with name_server() as (_, resolver):
        with pytest.raises(TimeoutError):
            await resolver("silent.test", 80)
        with pytest.raises(OSError, match="resolved"):
            await resolver("unknown.test", 80)
        assert not resolver._lookups


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "::1", "fe80::1%1"])
async def test_literal_addresses_are_those_of_getaddrinfo(host: str) -> None:
    expected = socket.getaddrinfo(host, 80, type=socket.SOCK_STREAM)
    async with name_server() as (server, resolver):
        assert list(await resolver(host, 80)) == [expected[0][4][0]]
        assert not server.queries


async def test_the_hosts_file_comes_first_and_changes_take_effect(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n10.1.2.3 Tools.internal tools # ours\nnonsense tools\n")
    async with name_server() as (server, _):
        resolver = Resolver(["127.0.0.1:9"], hosts_file=hosts)
        assert list(await resolver("localhost", 80)) == ["127.0.0.1"]
        assert list(await resolver("tools.INTERNAL", 80)) == ["10.1.2.3"]
        hosts.write_text("10.1.2.4 tools\n::1 tools\n")
        assert list(await resolver("tools", 80)) == ["10.1.2.4", "::1"]
        assert not server.queries
        await resolver.close()


def test_localhost_is_what_getaddrinfo_says() -> None:
    async def look_up() -> Sequence[str]:
        resolver = Resolver()
        try:
            return await resolver("localhost", 80)
        finally:
            await resolver.close()

    expected = {item[4][0] for item in socket.getaddrinfo("localhost", 80)}
    assert set(asyncio.run(look_up())) == expected


async def test_look_ups_of_one_account_do_not_take_the_places_of_others() -> None:
    """An account waits for its own slow names only, and learns that it asks for too many."""
    async with name_server(slow_s=3) as (server, resolver):
        egress = Egress(resolve=resolver, bounds=ServerBounds(connect_s=1))
        one, other = uuid4(), uuid4()
        slow = [asyncio.create_task(egress.addresses(f"slow-{n}.test", 80, one)) for n in range(24)]
        await asked(server, "slow", 4)
        async with asyncio.timeout(0.5):
            assert await egress.addresses("fast.test", 80, other) == [ADDRESS]
        assert sum(name.startswith("slow") for name in server.queries) == 4
        with pytest.raises(RateLimited):
            await egress.addresses("fast.test", 80, one)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        assert await egress.addresses("fast.test", 80, one) == [ADDRESS]


async def test_a_client_gets_the_errors_of_a_look_up() -> None:
    async with name_server() as (_, resolver):
        egress = Egress(resolve=resolver, bounds=ServerBounds(connect_s=0.3))
        async with egress.client(uuid4()) as client:
            with pytest.raises(httpx2.ConnectTimeout):
                await client.get("http://silent.test/")
            with pytest.raises(httpx2.ConnectError, match="no address"):
                await client.get("http://unknown.test/")
            with pytest.raises(EgressRefused):
                await client.get("http://localhost/")
