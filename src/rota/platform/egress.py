"""Makes all connections to URLs that customers provide, such as tool servers.

A host name is resolved once per connection. Every resulting address is checked, and the connection
goes to a checked address, so a DNS answer that changes later has no effect. Redirects pass the
same checks. Proxies and credentials from the environment are not used.
"""

import asyncio
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
from uuid import UUID

import anyio
import httpcore2
import httpx2
from httpcore2 import SOCKET_OPTION, AsyncNetworkStream

from rota.platform import json
from rota.platform.resolver import Resolver
from rota.platform.shares import Shares

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

# The request extension that marks a stream that stays open, such as server-sent events.
LONG_LIVED = "rota_long_lived"
MAX_REDIRECTS = 5
MAX_URL_CHARACTERS = 2_048
# How many addresses of a host name are tried, one after the other.
MAX_ADDRESSES = 3


class EgressRefused(Exception):
    """The URL or its address is not allowed. The message says why."""


class ResponseRejected(Exception):
    """A response exceeds a limit or has an encoding that was not requested."""


class EgressTimeout(Exception):
    """A request took longer than its time limit."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The response took longer than {limit_s:g} s.")


@dataclass(frozen=True, slots=True)
class ServerBounds:
    """Limits for one server: time, bytes, JSON values and connections."""

    connect_s: float = 5
    # Between two chunks of a response.
    read_s: float = 30
    # For the whole response.
    total_s: float = 60
    response_bytes: int = 4 * 1024 * 1024
    # A long-lived stream ends after this many bytes. The client can open it again.
    stream_bytes: int = 64 * 1024 * 1024
    # Commas and opening brackets. Parsed JSON needs many times its size in memory.
    json_delimiters: int = 250_000
    connections: int = 16


# Networks that some versions of the standard library treat as global.
_BLOCKED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("0.0.0.0/8", "unspecified"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("168.63.129.16/32", "a metadata service"),
        ("192.0.0.0/24", "reserved"),
        ("192.31.196.0/24", "reserved"),
        ("192.52.193.0/24", "reserved"),
        ("192.88.99.0/24", "6to4"),
        ("192.175.48.0/24", "reserved"),
        ("198.18.0.0/15", "reserved"),
        ("::/96", "IPv4 in IPv6"),
        ("64:ff9b:1::/48", "NAT64"),
        ("100::/64", "reserved"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "reserved"),
        ("5f00::/16", "reserved"),
        ("fec0::/10", "private"),
    )
)
_TRANSLATED = ip_network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


def blocked_reason(address: Address) -> str | None:
    """The reason why an address is not allowed, or None for an address in the public internet."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return blocked_reason(address.ipv4_mapped)
        embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        if address in _TRANSLATED:
            return blocked_reason(embedded)
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP and blocked_reason(embedded):
            return "IPv4 in IPv6"
    for applies, why in (
        (address.is_loopback, "loopback"),
        (address.is_link_local, "link-local"),
        (address.is_multicast, "multicast"),
        (address.is_unspecified, "unspecified"),
        (address.is_private, "private"),
        (address.is_reserved, "reserved"),
        (not address.is_global, "not public"),
    ):
        if applies:
            return why
    return next((why for network, why in _BLOCKED if address in network), None)


class Egress:
    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        https_only: bool = False,
        bounds: ServerBounds | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self.bounds = bounds or ServerBounds()
        self._https_only = https_only
        self._resolve = resolve or Resolver()
        self._lookups = Shares(
            "lookups",
            "This account looks up too many host names at once. Try again later.",
            total=64,
            per_account=4,
            waiting=64,
            # Less than a connection can take, so that the account learns why it was refused.
            wait_s=self.bounds.connect_s * 0.6,
        )
        self._networks: list[Network] = []
        self._hosts: set[str] = set()
        for entry in allow:
            try:
                self._networks.append(ip_network(entry, strict=False))
            except ValueError:
                self._hosts.add(entry.lower().rstrip("."))

    @cached_property
    def tls(self) -> ssl.SSLContext:
        # Shared by all clients, because loading the certificates takes longer than most calls.
        return httpx2.create_ssl_context(trust_env=False)

    def check_url(self, text: str) -> httpx2.URL:
        """Parses and checks a URL. Resolved addresses are checked when a connection is opened."""
        if len(text) > MAX_URL_CHARACTERS:
            raise EgressRefused(f"The URL is longer than {MAX_URL_CHARACTERS} characters.")
        if any(ord(character) <= 32 or ord(character) == 127 for character in text):
            raise EgressRefused("The URL contains a space or a control character.")
        if "\\" in text:
            raise EgressRefused("The URL contains a backslash.")
        try:
            url = httpx2.URL(text)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            raise EgressRefused(f"The URL is not valid: {str(error)[:100]}.") from None
        self._check(url)
        return url

    def _check(self, url: httpx2.URL) -> None:
        if url.scheme not in ("http", "https"):
            raise EgressRefused("The URL must start with http:// or https://.")
        if self._https_only and url.scheme != "https":
            raise EgressRefused("The URL must start with https://.")
        if url.userinfo or "@" in url.netloc.decode("ascii", "replace"):
            raise EgressRefused(
                "The URL must not contain a user name or password. Use headers or auth."
            )
        if not url.host:
            raise EgressRefused("The URL has no host.")
        try:
            literal: Address | None = ip_address(url.host.partition("%")[0])
        except ValueError:
            literal = None
        if literal is not None:
            self._check_address(url.host, literal)

    def _check_address(self, host: str, address: Address) -> None:
        if any(address.version == net.version and address in net for net in self._networks):
            return
        if (why := blocked_reason(address)) is not None:
            # The message does not show the address, so that callers cannot look up internal names.
            raise EgressRefused(
                f"Connections to {host[:100]} are not allowed (address type: {why}). "
                "Use a public address."
            )

    async def addresses(self, host: str, port: int, account_id: UUID) -> list[str]:
        """The addresses to connect to. If one of them is not allowed, the host is refused."""
        name = host.lower().rstrip(".")
        try:
            async with self._lookups.place(account_id):
                found = await self._resolve(host, port)
        except TimeoutError:
            raise
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError(f"The host {host[:100]} has no address") from None
        if not found:
            raise httpcore2.ConnectError(f"The host {host[:100]} has no address")
        if name not in self._hosts:
            for text in found:
                self._check_address(host, ip_address(text.partition("%")[0]))
        return list(found)[:MAX_ADDRESSES]

    def client(
        self,
        account_id: UUID,
        headers: dict[str, str] | None = None,
        transport: "Callable[[Transport], httpx2.AsyncBaseTransport] | None" = None,
    ) -> httpx2.AsyncClient:
        """An HTTP client that connects only to allowed addresses and limits every response."""
        guarded = Transport(self, account_id)
        bounds = self.bounds
        return httpx2.AsyncClient(
            transport=transport(guarded) if transport else guarded,
            headers=headers,
            timeout=httpx2.Timeout(bounds.read_s, connect=bounds.connect_s, pool=bounds.connect_s),
            max_redirects=MAX_REDIRECTS,
            trust_env=False,
        )


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses. TLS and the Host header still use the host name."""

    def __init__(self, egress: Egress, account_id: UUID) -> None:
        self._egress = egress
        self._account_id = account_id
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
                for address in await self._egress.addresses(host, port, self._account_id):
                    with suppress(httpcore2.ConnectError):
                        return await self._network.connect_tcp(address, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("The connection took too long") from None
        raise httpcore2.ConnectError(f"Nothing accepts connections at {host[:100]}:{port}")

    async def connect_unix_socket(self, *_: Any, **__: Any) -> NoReturn:
        raise EgressRefused("Connections to Unix sockets are not allowed.")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class Transport(httpx2.AsyncHTTPTransport):
    """Checks each request, and limits its response while it is read."""

    def __init__(self, egress: Egress, account_id: UUID) -> None:
        self._egress = egress
        # The constructor of the base class does not accept a network backend.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=egress.tls,
            max_connections=egress.bounds.connections,
            max_keepalive_connections=egress.bounds.connections,
            # Many servers close idle connections after 5 s. A call sent to a closing one would have
            # an unknown outcome.
            keepalive_expiry=4,
            network_backend=_CheckedBackend(egress, account_id),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._egress._check(request.url)
        # Without compression, the number of bytes received is the number of bytes read.
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            raise ResponseRejected(
                f"The response has the encoding {encoding[:40]}, which was not requested."
            )
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _LimitedStream(
            response.stream,
            self._egress.bounds,
            long_lived=request.extensions.get(LONG_LIVED) is True,
        )
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(
        self, stream: httpx2.AsyncByteStream, bounds: ServerBounds, *, long_lived: bool
    ) -> None:
        self._stream = stream
        self._bounds = bounds
        self._long_lived = long_lived

    async def __aiter__(self) -> AsyncIterator[bytes]:
        bounds, long_lived = self._bounds, self._long_lived
        max_bytes = bounds.stream_bytes if long_lived else bounds.response_bytes
        deadline = asyncio.get_running_loop().time() + bounds.total_s
        size = delimiters = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > max_bytes:
                raise ResponseRejected(f"The response is larger than {max_bytes} bytes.")
            delimiters += json.delimiters(chunk)
            if delimiters > bounds.json_delimiters and not long_lived:
                raise ResponseRejected("The response contains too many JSON values.")
            if not long_lived and asyncio.get_running_loop().time() > deadline:
                raise EgressTimeout(bounds.total_s)
            yield chunk

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
