"""The one way out to addresses that strangers name: tool servers and webhooks.

A name is resolved once, every address that it has is checked, and what is
dialled is an address that was checked: a name that answers differently the next
time is asked no next time. A redirect is a request like any other and passes
the same check. Nothing here reads proxies or credentials from the environment.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any, NoReturn

import anyio
import httpcore2
import httpx2
from httpcore2 import SOCKET_OPTION, AsyncNetworkStream

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_REDIRECTS = 5
MAX_URL_CHARACTERS = 2_048
# Of the addresses of a name, this many are tried one after the other.
MAX_TRIES = 3


class EgressRefused(Exception):
    """The address is none that this service talks to; the message says why."""


class ResponseRejected(Exception):
    """A response exceeds a limit or has an encoding that was not requested."""


class EgressTimeout(Exception):
    """A request took longer than its time limit."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The response took longer than {limit_s:g} s.")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a stranger's server may cost."""

    connect_s: float = 5
    # Between two pieces of an answer, and from its first to its last.
    read_s: float = 30
    total_s: float = 60
    response_bytes: int = 4 * 1024 * 1024
    # A stream that stays open is ended after this much, and may be opened again.
    stream_bytes: int = 64 * 1024 * 1024
    # Commas and brackets: what is read as JSON is many times as large in memory.
    json_marks: int = 250_000
    connections: int = 16


# What the standard library calls global, or did in some version, and is not for us.
_CLOSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("0.0.0.0/8", "unspecified"),
        ("100.64.0.0/10", "shared by carriers"),
        ("168.63.129.16/32", "a metadata service"),
        ("192.0.0.0/24", "reserved"),
        ("192.31.196.0/24", "reserved"),
        ("192.52.193.0/24", "reserved"),
        ("192.88.99.0/24", "a relay"),
        ("192.175.48.0/24", "reserved"),
        ("198.18.0.0/15", "reserved"),
        ("::/96", "IPv4 in IPv6"),
        ("64:ff9b:1::/48", "a translator"),
        ("100::/64", "reserved"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "a relay"),
        ("3fff::/20", "reserved"),
        ("5f00::/16", "reserved"),
        ("fec0::/10", "private"),
    )
)
_TRANSLATED = ip_network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


def why_closed(address: Address) -> str | None:
    """What keeps us from an address, or None for one in the open internet."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return why_closed(address.ipv4_mapped)
        embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        if address in _TRANSLATED:
            return why_closed(embedded)
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP and why_closed(embedded):
            return "IPv4 in IPv6"
    for holds, why in (
        (address.is_loopback, "loopback"),
        (address.is_link_local, "link-local"),
        (address.is_multicast, "multicast"),
        (address.is_unspecified, "unspecified"),
        (address.is_private, "private"),
        (address.is_reserved, "reserved"),
        (not address.is_global, "not public"),
    ):
        if holds:
            return why
    return next((why for network, why in _CLOSED if address in network), None)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Every address of a name, as the system's resolver tells them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


class Egress:
    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        https_only: bool = False,
        bounds: Bounds | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        self.bounds = bounds or Bounds()
        self._https_only = https_only
        self._resolve = resolve
        self._networks: list[Network] = []
        self._hosts: set[str] = set()
        for entry in allow:
            try:
                self._networks.append(ip_network(entry, strict=False))
            except ValueError:
                self._hosts.add(entry.lower().rstrip("."))

    @cached_property
    def tls(self) -> ssl.SSLContext:
        # One for all: reading the authorities takes longer than most calls.
        return httpx2.create_ssl_context(trust_env=False)

    def check_url(self, text: str) -> httpx2.URL:
        """The URL, if it is one that may be dialled at all. Addresses are checked on dialling."""
        if len(text) > MAX_URL_CHARACTERS:
            raise EgressRefused(f"The URL is longer than {MAX_URL_CHARACTERS} characters.")
        if any(ord(character) <= 32 or ord(character) == 127 for character in text):
            raise EgressRefused("The URL contains a space or a control character.")
        if "\\" in text:
            raise EgressRefused("The URL contains a backslash.")
        try:
            url = httpx2.URL(text)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            raise EgressRefused(f"This is no URL: {str(error)[:100]}.") from None
        self._check(url)
        return url

    def _check(self, url: httpx2.URL) -> None:
        if url.scheme not in ("http", "https"):
            raise EgressRefused("Only http and https are spoken here.")
        if self._https_only and url.scheme != "https":
            raise EgressRefused("Only https is spoken here.")
        if url.userinfo or "@" in url.netloc.decode("ascii", "replace"):
            raise EgressRefused("A URL must not carry a user or a password. Use headers or auth.")
        if not url.host:
            raise EgressRefused("The URL names no host.")
        try:
            literal: Address | None = ip_address(url.host.partition("%")[0])
        except ValueError:
            literal = None
        if literal is not None:
            self._check_address(url.host, literal)

    def _check_address(self, host: str, address: Address) -> None:
        if any(address.version == net.version and address in net for net in self._networks):
            return
        if (why := why_closed(address)) is not None:
            # The address itself stays untold: what a name means inside is nobody's business.
            raise EgressRefused(
                f"{host[:100]} is an address that this service does not talk to ({why})."
            )

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses to dial. One that is closed closes the name."""
        name = host.lower().rstrip(".")
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError(f"{host[:100]} has no address") from None
        if not found:
            raise httpcore2.ConnectError(f"{host[:100]} has no address")
        if name not in self._hosts:
            for text in found:
                self._check_address(host, ip_address(text.partition("%")[0]))
        return list(found)[:MAX_TRIES]

    def client(
        self,
        headers: dict[str, str] | None = None,
        transport: "Callable[[Transport], httpx2.AsyncBaseTransport] | None" = None,
    ) -> httpx2.AsyncClient:
        """A client that reaches only what may be reached, and reads only so much."""
        guarded = Transport(self)
        bounds = self.bounds
        return httpx2.AsyncClient(
            transport=transport(guarded) if transport else guarded,
            headers=headers,
            timeout=httpx2.Timeout(bounds.read_s, connect=bounds.connect_s, pool=bounds.connect_s),
            max_redirects=MAX_REDIRECTS,
            trust_env=False,
        )


class _Dial(httpcore2.AsyncNetworkBackend):
    """Opens connections to checked addresses. Names in TLS and HTTP stay as they were."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        try:
            with anyio.fail_after(timeout):
                for address in await self._egress.addresses(host, port):
                    with suppress(httpcore2.ConnectError):
                        return await self._network.connect_tcp(address, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("the connection took too long") from None
        raise httpcore2.ConnectError(f"nobody answers at {host[:100]}:{port}")

    async def connect_unix_socket(self, *_: Any, **__: Any) -> NoReturn:
        raise EgressRefused("Sockets in the file system are not reached from here.")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class Transport(httpx2.AsyncHTTPTransport):
    """Checks each request, and counts what comes back as it comes."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        # The base class has no place to hand a backend in.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=egress.tls,
            max_connections=egress.bounds.connections,
            max_keepalive_connections=egress.bounds.connections,
            keepalive_expiry=30,
            network_backend=_Dial(egress),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._egress._check(request.url)
        # What arrives is what was counted: nothing unpacks itself in here.
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            raise ResponseRejected(
                f"The response has the encoding {encoding[:40]}, which was not requested."
            )
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream, self._egress.bounds, endless=_endless(request))
        return response


def _endless(request: httpx2.Request) -> bool:
    return request.extensions.get("endless") is True


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, bounds: Bounds, *, endless: bool) -> None:
        self._stream = stream
        self._bounds = bounds
        self._endless = endless

    async def __aiter__(self) -> AsyncIterator[bytes]:
        bounds, endless = self._bounds, self._endless
        most = bounds.stream_bytes if endless else bounds.response_bytes
        ends = asyncio.get_running_loop().time() + bounds.total_s
        size = marks = 0
        async for piece in self._stream:
            size += len(piece)
            if size > most:
                raise ResponseRejected(f"The response is larger than {most} bytes.")
            marks += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
            if marks > bounds.json_marks and not endless:
                raise ResponseRejected("The response contains too many JSON values.")
            if not endless and asyncio.get_running_loop().time() > ends:
                raise EgressTimeout(bounds.total_s)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Raises `EgressTimeout` when the block takes longer, even if no data arrives."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise EgressTimeout(seconds) from None
