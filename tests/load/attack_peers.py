"""What the attacked account uses: a tool server and a name server, in their own process.

    python -m tests.load.attack_peers

Prints the URL of the tool server and the address of the name server as one line of JSON.
"""

import asyncio
import json
import socket
import struct
from typing import Any

import uvloop

from tests.mcp.peers import Peer

ADDRESS_QUERY = 1
SLOW_S = 4.0


class NameServer(asyncio.DatagramProtocol):
    """Every name has the address 127.0.0.1. The answer for `slow…` takes some seconds."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.index(0, 12) + 5
        question = data[12:end]
        (kind,) = struct.unpack("!H", question[-4:-2])
        answer = b""
        if kind == ADDRESS_QUERY:
            # A pointer to the name, type, class, a TTL of zero, and the address.
            answer = struct.pack("!HHHIH", 0xC00C, kind, 1, 0, 4) + socket.inet_aton("127.0.0.1")
        counts = struct.pack("!HHHHH", 0x8180, 1, bool(answer), 0, 0)
        delay_s = SLOW_S if question[1:5].lower() == b"slow" else 0
        asyncio.get_running_loop().call_later(
            delay_s, self._transport.sendto, data[:2] + counts + question + answer, addr
        )


async def serve() -> None:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        NameServer, local_addr=("127.0.0.1", 0)
    )
    host, port = transport.get_extra_info("sockname")
    async with Peer().serve() as peer:
        print(json.dumps({"tools": peer.url, "names": f"{host}:{port}"}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
