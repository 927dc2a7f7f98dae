"""Whose window an unauthenticated request counts in: the client's address, as far as it is known.

X-Forwarded-For is written by anyone. Only what a trusted proxy has appended to
it counts, so that a forged header gives nobody a second window.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

UNKNOWN = "unknown"


def client_ip(
    peer: str | None, forwarded_for: str | None, trusted: Sequence[IPv4Network | IPv6Network]
) -> str:
    """The address nearest to us that is not a trusted proxy's.

    Several X-Forwarded-For headers are one list: join them with commas first.
    """
    client = _parse(peer or "")
    if client is None:
        return UNKNOWN
    # Each proxy appends the peer it saw. What stands left of an address that is not a trusted
    # proxy's, or of something that is no address, could have been written by the client.
    for hop in reversed((forwarded_for or "").split(",")):
        if not any(client in network for network in trusted):
            break
        if (address := _parse(hop)) is None:
            break
        client = address
    if isinstance(client, IPv4Address):
        return str(client)
    # A subscriber has at least a /64, and can take any address in it.
    return f"{IPv6Address(int(client) >> 64 << 64)}/64"


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """An address without brackets, port and zone; IPv4 inside IPv6 is IPv4."""
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
