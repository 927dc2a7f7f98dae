"""The client address that unauthenticated requests are counted by.

Any client can send X-Forwarded-For. Only the part that trusted proxies appended counts, so a forged
header does not give a client a second window.
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

UNKNOWN = "unknown"


def client_ip(
    peer: str | None, forwarded_for: str | None, trusted: Sequence[IPv4Network | IPv6Network]
) -> str:
    """The nearest address that does not belong to a trusted proxy.

    Several X-Forwarded-For headers form one list. Join them with commas first.
    """
    client = _parse(peer or "")
    if client is None:
        return UNKNOWN
    # Each proxy appends the peer it saw. The client can have written everything to the left of an
    # untrusted or invalid address.
    for hop in reversed((forwarded_for or "").split(",")):
        if not any(client in network for network in trusted):
            break
        if (address := _parse(hop)) is None:
            break
        client = address
    if isinstance(client, IPv4Address):
        return str(client)
    # A subscriber has at least a /64 and can use any address in it.
    return f"{IPv6Address(int(client) >> 64 << 64)}/64"


@lru_cache(maxsize=4096)
def direct_client(peer: str | None) -> str:
    """As `client_ip`, where there are no proxies."""
    return client_ip(peer, None, ())


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """An address without brackets, port and zone. A mapped IPv4 address becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address
    return address
