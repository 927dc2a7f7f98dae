"""Calls of a tool through the service against the SDK's own on an open session.

    python -m tests.load.mcp_bench [seconds]

Both talk to the same server, in a process of its own, one call after the other
and eight at a time. Prints calls/s and the ratio; ends with 1 under 0.5.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from rota.dev.stack import Stack
from tests.mcp.conftest import LOCAL, connect
from tests.mcp.peers import Peer
from tests.service import Service, free_port, prepared_settings
from tests.tasks.world import newcomers

LEAST_RATIO = 0.5
ROUNDS = 10
ARGUMENTS = {"a": 20, "b": 22}


async def rate(call: Callable[[], Awaitable[object]], seconds: float, at_once: int) -> float:
    done = 0
    ends = time.monotonic() + seconds

    async def work() -> None:
        nonlocal done
        while time.monotonic() < ends:
            await call()
            done += 1

    await asyncio.gather(*(work() for _ in range(at_once)))
    return done / seconds


async def main(seconds: float) -> int:
    port = free_port()
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.load.mcp_bench", "--serve", str(port)
    )
    url = f"http://127.0.0.1:{port}/mcp"
    worst = float("inf")
    try:
        with tempfile.TemporaryDirectory(prefix="rota") as data:
            async with Stack(
                Path(data), components=("postgres", "redis", "idp"), durable=False
            ) as stack:
                worst = await compare(stack, url, seconds)
    finally:
        server.kill()
        await server.wait()
    print(f"worst ratio {worst:.2f} (at least {LEAST_RATIO})")
    return 0 if worst >= LEAST_RATIO else 1


async def compare(stack: Stack, url: str, seconds: float) -> float:
    settings = await prepared_settings(stack, "a", "mcp_bench", egress_allow=LOCAL)
    base = Service(stack, settings, None)  # type: ignore[arg-type]
    ratios = []
    async with base.process() as service, httpx2.AsyncClient() as http:
        # An account may make 6,000 calls in a minute: a few of them share the work.
        people = [person for _ in range(3) for person in await newcomers(service)]
        servers = [await connect(person, url) for person in people]
        requests = [
            raw_request(person.token, server["id"])
            for person, server in zip(people, servers, strict=True)
        ]
        turn = 0
        idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

        async def through_service() -> None:
            # Raw, because a client library would take as long as the service.
            nonlocal turn
            turn = (turn + 1) % len(people)
            reader, writer = (
                idle.pop()
                if idle
                else await asyncio.open_connection("127.0.0.1", service.settings.port)
            )
            writer.write(requests[turn])
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            assert b'"isError":false' in await reader.readexactly(length)
            idle.append((reader, writer))

        async with Client(streamable_http_client(url, http_client=http), cache=None) as client:

            async def direct() -> None:
                assert not (await client.call_tool("add", ARGUMENTS)).is_error

            await client.list_tools()
            for at_once in (1, 8):
                await rate(direct, 0.5, at_once)
                await rate(through_service, 0.5, at_once)
                own = ours = 0.0
                # In turns, so that whatever else the machine does happens to both.
                for _ in range(ROUNDS):
                    own += await rate(direct, seconds / ROUNDS, at_once) / ROUNDS
                    ours += await rate(through_service, seconds / ROUNDS, at_once) / ROUNDS
                ratios.append(ours / own)
                print(
                    f"{at_once} at once: SDK {own:.0f} calls/s, through the service "
                    f"{ours:.0f} calls/s, ratio {ours / own:.2f}"
                )
    return min(ratios)


def raw_request(token: str, server_id: str) -> bytes:
    body = json.dumps({"tool": "add", "arguments": ARGUMENTS})
    return (
        f"POST /api/mcp/{server_id}/invoke HTTP/1.1\r\nHost: bench\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def serve(port: int) -> None:
    import uvicorn
    from mcp.server.lowlevel.server import Server

    peer = Peer()
    server: Server[dict[str, object]] = Server(
        "bench", on_list_tools=peer._list, on_call_tool=peer._call
    )
    config = uvicorn.Config(
        server.streamable_http_app(), host="127.0.0.1", port=port, log_level="critical"
    )
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(int(sys.argv[2])))
    else:
        sys.exit(asyncio.run(main(float(sys.argv[1]) if sys.argv[1:] else 5)))
