"""No URL and no redirect reaches an address that is not allowed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from rota.mcp.errors import ServerError
from rota.mcp.model import Transport
from rota.mcp.session import Address, Timeouts
from rota.mcp.sessions import Sessions
from rota.platform.egress import (
    Egress,
    EgressRefused,
    EgressTimeout,
    ServerBounds,
    blocked_reason,
    time_limit,
)

# Forms of 127.0.0.1, each with {port}.
LOOPBACK = (
    *("127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "127.255.255.254", "2130706433"),
    *("0x7f000001", "0x7f.0x0.0x0.0x1", "0x7f.1", "0x7F.0.0.1", "017700000001", "0177.0.0.1"),
    *("0177.0.0.01", "0177.1", "00000177.0.0.1", "127.0.0.1.", "0", "0.0.0.0", "0x0", "00"),
    *("0.0.0.1", "127.0x0.0.1", "127.0.0x1", "0x7f.0.1", "2130706434", "017700000002"),
    *("localhost", "LOCALHOST", "LocalHost.", "localhost.", "ip6-localhost", "ip6-loopback"),
    *("[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::]"),
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]"),
    *("[::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::127.0.0.1]"),
    *("[2002:7f00:1::]", "[2002:7f00:0001::1]", "[2001:0:7f00:1::]", "[::ffff:0:127.0.0.1]"),
    *("[fe80::5efe:127.0.0.1]", "[2607:f8b0::5efe:127.0.0.1]", "[2607:f8b0::200:5efe:127.0.0.1]"),
    # Unicode characters that normalization turns into digits, dots and letters.
    *("①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "𝟏𝟐𝟕.𝟎.𝟎.𝟏"),
    *("ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "ｌｏｃａｌｈｏｓｔ", "localho\u017ft", "loc\u00adalhost"),
)
PRIVATE = (
    *("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.1.254"),
    *("167772161", "0x0a000001", "012.0.0.1", "0xc0a80001", "3232235521", "192.168.257"),
    *("100.64.0.1", "100.127.255.254", "100.100.100.200", "192.0.0.1", "192.0.0.192", "192.0.2.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "192.88.99.1", "240.0.0.1"),
    *("255.255.255.255", "224.0.0.1", "239.255.255.255", "233.252.0.1", "168.63.129.16"),
    *("0.1.2.3", "192.31.196.1", "192.52.193.1", "192.175.48.1"),
    *("[fc00::1]", "[fd00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25eth0]", "[fec0::1]"),
    *("[ff02::1]", "[ff0e::1]", "[100::1]", "[2001:db8::1]", "[3fff::1]", "[5f00::1]"),
    *("[2001:2::1]", "[2001:10::1]", "[2001:20::1]", "[::ffff:10.0.0.1]", "[::ffff:192.168.0.1]"),
    *("[64:ff9b::10.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[2002:a00:1::]", "[2002:c0a8:101::1]"),
    *("[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "[::10.0.0.1]", "[::a00:1]", "[::ffff:a9fe:a9fe]"),
)
METADATA = (
    *("169.254.169.254", "169.254.170.2", "169.254.0.1", "2852039166", "0xa9fea9fe"),
    *("0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.16689662", "169.254.43518"),
    *("[::ffff:169.254.169.254]", "[::169.254.169.254]", "[2002:a9fe:a9fe::]", "169.254.169.254."),
    *("①⑥⑨.②⑤④.①⑥⑨.②⑤④", "metadata.google.internal"),
)
MALFORMED = (
    *("ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/", "unix:///run/x.sock"),
    *("ws://127.0.0.1:{port}/", "javascript:alert(1)", "//127.0.0.1:{port}/", "127.0.0.1:{port}"),
    *(
        "http:///x",
        "http://",
        "https://",
        "http://@127.0.0.1:{port}/",
        "http://a@127.0.0.1:{port}/",
    ),
    *("http://a:b@127.0.0.1:{port}/", "http://example.com@127.0.0.1:{port}/"),
    *("http://127.0.0.1:{port}\\@example.com/", "http://example.com\\@127.0.0.1:{port}/"),
    *("http://127.0.0.1:{port} /", " http://127.0.0.1:{port}/", "http://127.0.0.1\t:{port}/"),
    *(
        "http://127.0.0.1\r\n:{port}/",
        "http://[::1",
        "http://[::1]]:{port}/",
        "http://127.0.0.1:x/",
    ),
    *("http://127.0.0.1:99999/", "http://[v1.x]/", "http://%31%32%37.0.0.1:{port}/"),
    *("http://127.0.0.1%00.example.com:{port}/", "http://\u202e127.0.0.1:{port}/"),
    "http://" + "a" * 3000 + "/",
)
HOSTS = LOOPBACK + PRIVATE + METADATA
URLS = [f"http://{host}:{{port}}/mcp" for host in HOSTS] + list(MALFORMED)
TIMEOUTS = Timeouts(connect_s=3, call_s=3)
ACCOUNT = uuid4()


@dataclass
class Trap:
    """Counts connections to addresses that must not be reached."""

    port: int
    seen: int = 0


@asynccontextmanager
async def trapped() -> AsyncIterator[Trap]:
    trap = Trap(0)

    async def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        trap.seen += 1
        writer.close()

    first = await asyncio.start_server(count, "127.0.0.1", 0)
    trap.port = first.sockets[0].getsockname()[1]
    servers = [first]
    for host in ("127.0.0.2", "127.255.255.254", "::1"):
        try:
            servers.append(await asyncio.start_server(count, host, trap.port))
        except OSError:
            continue  # This machine has no IPv6.
    try:
        yield trap
    finally:
        for server in servers:
            server.close()


def test_there_are_enough_urls() -> None:
    assert len(URLS) >= 150


async def test_no_url_reaches_a_blocked_address() -> None:
    egress = Egress(bounds=ServerBounds(connect_s=2, read_s=2, total_s=2))
    sessions = Sessions(egress, TIMEOUTS)
    reached: list[str] = []
    async with trapped() as trap:
        for pattern in URLS:
            url = pattern.replace("{port}", str(trap.port))
            transports: tuple[Transport, ...] = ("streamable-http", "sse")
            for transport in transports:
                with pytest.raises((ServerError, EgressRefused)):
                    await sessions.open(ACCOUNT, Address(url, transport))
            if trap.seen:
                reached.append(url)
                trap.seen = 0
        # The same with a plain HTTP client.
        async with egress.client(ACCOUNT) as client:
            for pattern in URLS:
                url = pattern.replace("{port}", str(trap.port))
                with pytest.raises((EgressRefused, httpx2.HTTPError, httpx2.InvalidURL)):
                    await client.get(url)
        assert reached == []
        assert trap.seen == 0
    await sessions.aclose()


def answering(*answers: Sequence[str]) -> tuple[Egress, list[str]]:
    """An egress whose resolver returns these answers in turn, and the names it resolves."""
    resolved: list[str] = []
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        resolved.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    return Egress(resolve=resolve, bounds=ServerBounds(connect_s=1, read_s=1, total_s=1)), resolved


async def test_a_host_name_is_resolved_once_per_connection_and_that_address_is_used() -> None:
    connected: list[str] = []

    class Connected(Exception):
        pass

    async with trapped() as trap:
        egress, resolved = answering(["93.184.215.14"], ["127.0.0.1"])
        client = egress.client(ACCOUNT)
        transport: Any = client._transport
        network = transport._pool._network_backend._network

        async def connect_tcp(host: str, port: int, **_: object) -> object:
            connected.append(host)
            raise Connected

        network.connect_tcp = connect_tcp
        with pytest.raises(Connected):
            await client.get(f"http://rebinding.test:{trap.port}/")
        assert (resolved, connected) == (["rebinding.test"], ["93.184.215.14"])
        # The second connection resolves the name again, gets a loopback address and is refused.
        with pytest.raises(EgressRefused):
            await client.get(f"http://rebinding.test:{trap.port}/")
        assert connected == ["93.184.215.14"]
        assert trap.seen == 0
        await client.aclose()


async def test_one_blocked_address_blocks_the_host_name() -> None:
    async with trapped() as trap:
        for answer in (
            ["93.184.215.14", "127.0.0.1"],
            ["127.0.0.1", "93.184.215.14"],
            ["::ffff:127.0.0.1"],
            ["64:ff9b::7f00:1"],
            ["fe80::1%lo"],
        ):
            egress, _ = answering(answer)
            async with egress.client(ACCOUNT) as client:
                with pytest.raises(EgressRefused):
                    await client.get(f"http://mixed.test:{trap.port}/")
        assert trap.seen == 0


async def test_redirects_are_checked_and_counted() -> None:
    """An allowed server redirects up to five times, then to a blocked address."""
    async with trapped() as trap:
        hops = 0

        async def redirecting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal hops
            request = await reader.readuntil(b"\r\n\r\n")
            left = int(request.split(b" ")[1].split(b"/")[1].split(b"?")[0] or b"0")
            hops += 1
            if left:
                where = f"http://allowed.test:{port}/{left - 1}"
            else:
                where = f"http://127.0.0.1:{trap.port}/"
            writer.write(
                f"HTTP/1.1 307 x\r\nLocation: {where}\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(redirecting, "127.0.0.3", 0)
        port = server.sockets[0].getsockname()[1]

        async def resolve(host: str, _: int) -> Sequence[str]:
            return ["127.0.0.3"] if host == "allowed.test" else [host]

        egress = Egress(allow=["allowed.test"], resolve=resolve)
        async with egress.client(ACCOUNT) as client:
            for count in range(5):
                hops = 0
                with pytest.raises(EgressRefused):
                    await client.get(f"http://allowed.test:{port}/{count}", follow_redirects=True)
                assert hops == count + 1
            with pytest.raises(httpx2.TooManyRedirects):
                await client.get(f"http://allowed.test:{port}/50", follow_redirects=True)
        sessions = Sessions(egress, TIMEOUTS)
        for count in range(5):
            with pytest.raises(ServerError):
                await sessions.open(
                    ACCOUNT, Address(f"http://allowed.test:{port}/{count}", "streamable-http")
                )
        await sessions.aclose()
        server.close()
        assert trap.seen == 0


async def test_the_allow_list_permits_networks_and_host_names() -> None:
    async with trapped() as trap:
        for allow in (["127.0.0.0/8"], ["127.0.0.1"]):
            async with Egress(allow=allow).client(ACCOUNT) as client:
                with pytest.raises(httpx2.RemoteProtocolError):
                    await client.get(f"http://127.0.0.1:{trap.port}/")
        async with Egress(allow=["localhost"]).client(ACCOUNT) as client:
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.get(f"http://localhost:{trap.port}/")
            with pytest.raises(EgressRefused):
                await client.get(f"http://127.0.0.1:{trap.port}/")
        assert trap.seen == 3


async def test_proxy_settings_in_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with trapped() as trap:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{trap.port}")
        egress, _ = answering(["127.0.0.1"])
        async with egress.client(ACCOUNT) as client:
            with pytest.raises(EgressRefused):
                await client.get("http://somewhere.test/")
        assert trap.seen == 0


def test_production_requires_https() -> None:
    with pytest.raises(EgressRefused, match="https"):
        Egress(https_only=True).check_url("http://example.com/")
    assert str(Egress(https_only=True).check_url("https://example.com/x")).endswith("/x")


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808", "100.128.0.1"],
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert blocked_reason(ip_address(address)) is None


async def test_a_block_that_takes_too_long_raises_a_timeout() -> None:
    with pytest.raises(EgressTimeout):
        async with time_limit(0.01):
            await asyncio.sleep(5)


async def test_a_host_name_without_addresses_cannot_be_connected() -> None:
    egress, _ = answering([])
    with pytest.raises(httpx2.ConnectError):
        async with egress.client(ACCOUNT) as client:
            await client.get("http://nothing.test/")
