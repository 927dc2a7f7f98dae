"""Compares tool calls through the service with direct calls of the SDK on an open session.

    python -m tests.load.mcp_bench [seconds]

Both call the same server, which runs in its own process, with one and with eight concurrent
calls. Prints calls/s and the ratio. Exits with 1 if the ratio is below 0.5.
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

MIN_RATIO = 0.5
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

    await asyncio.gather(*[work() for _ in range(at_once)])
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
    print(f"worst ratio {worst:.2f} (minimum {MIN_RATIO})")
    return 0 if worst >= MIN_RATIO else 1


async def compare(stack: Stack, url: str, seconds: float) -> float:
    settings = await prepared_settings(stack, "a", "mcp_bench", egress_allow=LOCAL)
    base = Service(stack, settings, None)  # type: ignore[arg-type]
    ratios = []
    async with base.process(fresh=True) as service, httpx2.AsyncClient() as http:
        # The limit is 6,000 calls per minute and account, so several accounts share the calls.
        people = [person for _ in range(3) for person in await newcomers(service)]
        servers = [await connect(person, url) for person in people]
        requests = [
            raw_request(person.token, server["id"])
            for person, server in zip(people, servers, strict=True)
        ]
        turn = 0
        idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

        async def through_service() -> None:
            # A raw socket, because a client library would take as long as the service.
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
                sdk = service_rate = 0.0
                # Alternate, so that other load on the machine affects both.
                for _ in range(ROUNDS):
                    sdk += await rate(direct, seconds / ROUNDS, at_once) / ROUNDS
                    service_rate += await rate(through_service, seconds / ROUNDS, at_once) / ROUNDS
                ratios.append(service_rate / sdk)
                print(
                    f"{at_once} concurrent: SDK {sdk:.0f} calls/s, service "
                    f"{service_rate:.0f} calls/s, ratio {service_rate / sdk:.2f}"
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
