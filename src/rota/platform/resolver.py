"""Looks up host names without threads, so that slow names do not delay others.

The system's `getaddrinfo` blocks a thread, and asyncio has few of them. Here, c-ares sends all
queries from one thread. Literal addresses, the hosts file and the name servers of the system are
used as `getaddrinfo` uses them.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

import aiodns

from rota.platform.cache import SharedCalls

DEADLINE_S = 5.0
# For one attempt. c-ares shortens the first ones if the name server is usually faster.
ATTEMPT_S = 1.0
ATTEMPTS = 5


class Resolver:
    """Resolves names for one event loop. `servers` replaces the name servers of the system."""

    def __init__(
        self, servers: Sequence[str] | None = None, *, hosts_file: Path = Path("/etc/hosts")
    ) -> None:
        self._servers = servers
        self._hosts_file = hosts_file
        self._hosts: Mapping[str, Sequence[str]] = {}
        # When the hosts file was changed, and its size.
        self._hosts_state: tuple[int, int] | None = None
        self._dns: aiodns.DNSResolver | None = None
        self._lookups: SharedCalls[str, list[str]] = SharedCalls()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a host name. Raises OSError if it has none, or not in time."""
        if (literal := _literal(host, port)) is not None:
            return [literal]
        name = host.encode("idna").decode().lower()
        if (listed := self._listed(name)) is not None:
            return listed
        return list(await self._lookups.run(name, lambda: self._look_up(name)))

    async def close(self) -> None:
        self._lookups.cancel()
        if self._dns is not None:
            await self._dns.close()
            self._dns = None

    async def _look_up(self, name: str) -> list[str]:
        try:
            if self._dns is None:
                self._dns = aiodns.DNSResolver(
                    self._servers, timeout=ATTEMPT_S, tries=ATTEMPTS, lookups="b"
                )
            async with asyncio.timeout(DEADLINE_S):
                found = await self._dns.getaddrinfo(name, type=socket.SOCK_STREAM)
        except aiodns.error.DNSError as error:
            raise OSError(f"The name cannot be resolved: {error}") from None
        return list(dict.fromkeys(node.addr[0].decode() for node in found.nodes))

    def _listed(self, name: str) -> Sequence[str] | None:
        """The addresses in the hosts file, which is read again when it has changed."""
        try:
            stat = self._hosts_file.stat()
            state = (stat.st_mtime_ns, stat.st_size)
            if state != self._hosts_state:
                self._hosts = _parsed(self._hosts_file.read_text("utf-8", "replace"))
                self._hosts_state = state
        except OSError:
            self._hosts = {}
        return self._hosts.get(name)


def _literal(host: str, port: int) -> str | None:
    """The address, if the host is one in any form that `getaddrinfo` accepts, such as 127.1."""
    try:
        [first, *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        return None
    return str(first[4][0])


def _parsed(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        try:
            ip_address(address.partition("%")[0])
        except ValueError:
            continue
        for name in names:
            addresses = found.setdefault(name.lower(), [])
            if address not in addresses:
                addresses.append(address)
    return found
