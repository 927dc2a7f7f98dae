"""An attacker: what attacks have in common, and how its process takes part in a measurement.

Standard input has the target as one line of JSON, then `go`, then `stop`. Standard output has
`ready`, then the number of each kind of response as JSON. Attackers normally have machines of their
own, so their process has the lowest priority.
"""

import asyncio
import itertools
import json
import os
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import asyncpg
import uvloop

from rota.platform import ids
from tests.load.raw_http import RawClient, Response, read_head, request
from tests.mcp import hostile
from tests.runs.scripted import Scripted
from tests.tasks.world import place

# Requests per second: what the highest tier can send, to all endpoints and to AI endpoints, and
# what clients without a credential send.
RATE, AI_RATE, ANONYMOUS_RATE = 100, 80, 300
# The window of the rate limit is a minute long, so it allows a burst.
BURST_RATE = 300
TEXT = 50_000
ESTABLISHED = 1


@dataclass(frozen=True)
class Target:
    port: int
    # An API key of an account of the highest tier, and the account.
    token: str
    account: str
    # To prepare large data.
    owner_url: str
    model_url: str
    issuer_url: str

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


class Attacker:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.account = UUID(target.account)
        self.client = RawClient(target.port)
        self.model = Scripted(target.model_url)
        # The number of each kind of response.
        self.got: Counter[str] = Counter()
        self.prepared = asyncio.Event()
        self.started = asyncio.Event()
        self._next_stream = 0.0

    async def ready(self) -> None:
        """Waits until the attack begins. Everything before it is preparation."""
        self.prepared.set()
        await self.started.wait()

    # Requests

    async def send(self, data: bytes) -> Response | None:
        """Counts the response. The result is None if the service closes the connection."""
        try:
            response = await self.client.send(data)
        except (OSError, asyncio.IncompleteReadError):
            self.got["closed"] += 1
            return None
        self.got[response.label] += 1
        return response

    async def request(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> Response | None:
        return await self.send(request(method, path, self.target.token, body, **headers))

    async def must(self, method: str, path: str, body: Any = None) -> Any:
        """A request of the preparation, which must succeed."""
        response = await self.client.send(request(method, path, self.target.token, body))
        assert response.status in (200, 201), response.body[:500]
        return response.json()

    async def at_rate(
        self, rate: float, send: Callable[[int], Awaitable[object]], at_once: int = 200
    ) -> None:
        """Sends at this rate, while fewer than this many requests are in progress."""
        loop = asyncio.get_running_loop()
        begun, room = loop.time(), asyncio.Semaphore(at_once)

        async def one(number: int) -> None:
            try:
                await send(number)
            finally:
                room.release()

        async with asyncio.TaskGroup() as tasks:
            for number in itertools.count():
                await asyncio.sleep(begun + number / rate - loop.time())
                await room.acquire()
                tasks.create_task(one(number))

    async def always(self, at_once: int, send: Callable[[int], Awaitable[object]]) -> None:
        """Sends as fast as responses arrive, with this many requests in progress."""
        numbers = itertools.count()

        async def again() -> None:
            while True:
                await send(next(numbers))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(again())

    # Connections

    async def hold(
        self, count: int, data: bytes = b"", *, drip: bytes = b"", buffer: int | None = None
    ) -> None:
        """Keeps connections open that send this and read nothing.

        Each then sends one byte of `drip` per second. One that the service closes is opened again.
        """
        async with asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(self._hold_one(data, drip, buffer))
                await asyncio.sleep(1 / ANONYMOUS_RATE)

    async def _hold_one(self, data: bytes, drip: bytes, buffer: int | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with socket.socket() as sock:
                if buffer is not None:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
                sock.setblocking(False)
                with suppress(OSError):
                    await loop.sock_connect(sock, ("127.0.0.1", self.target.port))
                    self.got["opened"] += 1
                    async with asyncio.timeout(10):
                        await loop.sock_sendall(sock, data)
                rest = iter(drip)
                await asyncio.sleep(1)
                while _is_open(sock):
                    with suppress(OSError):
                        sock.send(bytes(itertools.islice(rest, 1)))
                    await asyncio.sleep(1)
            self.got["closed"] += 1

    async def stream(self, path: str) -> None:
        """Opens a stream of events and reads it. If it is refused or ends, opens it again."""
        data, loop = request("GET", path, self.target.token), asyncio.get_running_loop()
        while True:
            self._next_stream = max(self._next_stream + 1 / BURST_RATE, loop.time())
            await asyncio.sleep(self._next_stream - loop.time())
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await self.client.connect()
                writer.write(data)
                status, headers = await read_head(reader)
                if status == 200:
                    self.got["opened"] += 1
                    while await reader.read(65_536):
                        pass
                else:
                    body = await reader.readexactly(int(headers["content-length"]))
                    self.got[Response(status, body).label] += 1
                writer.close()

    # Preparation

    @asynccontextmanager
    async def tool_server(self, **at: hostile.Behaviour) -> AsyncIterator[str]:
        async with hostile.served(hostile.mcp_handler(**at)) as url:
            yield url

    async def connect(self, url: str, name: str = "peer") -> str:
        """Connects a tool server and returns its ID."""
        found: str = (await self.must("POST", "/api/mcp", {"name": name, "url": url}))["server"][
            "id"
        ]
        return found

    async def invoke(self, server: str, tool: str, arguments: Any) -> Response | None:
        body = {"tool": tool, "arguments": arguments}
        return await self.request("POST", f"/api/mcp/{server}/invoke", body)

    async def begin_run(self, script: str) -> Response | None:
        body = {"name": "A task", "agent": "assistant", "input": f"Please. {script}"}
        return await self.request("POST", "/api/tasks", body)

    async def create(self, **body: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await self.must("POST", "/api/tasks", {"name": "x", **body}))[
            "task"
        ]
        return found

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[Any]:
        """A connection without row security."""
        connection = await asyncpg.connect(self.target.owner_url)
        try:
            yield connection
        finally:
            await connection.close()

    async def tree(self, count: int) -> str:
        """A task with this many tasks below it, on two levels. Returns its ID."""
        root = await self.create(status="RUNNING")
        first = await self.create(status="RUNNING", parentTaskId=root["id"])
        async with self.owner() as owner:
            await owner.execute(
                """
                INSERT INTO tasks (account_id, id, status, hosted, depth, parent_task_id, name,
                    created_at, updated_at, created_by)
                SELECT $1, gen_random_uuid(), 'PENDING', false, 2, $2, 'x', now(), now(), $1
                FROM generate_series(1, $3)
                """,
                self.account,
                ids.from_wire("task", first["id"]),
                count,
            )
            # Also updates the totals of the account.
            await place(owner, root, "RUNNING")
        return str(root["id"])

    async def many_tasks(self, count: int, text: str) -> None:
        """Tasks with this text, as copies of one that the service created."""
        first = await self.create(status="RUNNING", description=text, input=text, output=text)
        for _ in range(10):
            actions = {"actions": [text[:2_000]] * 100}
            path = f"/api/tasks/{first['id']}"
            data = request("PATCH", path, self.target.token, actions)
            if (await self.client.send(data)).status != 200:
                break
        async with self.owner() as owner:
            await owner.execute(
                """
                INSERT INTO tasks (account_id, id, status, hosted, name, created_at, updated_at,
                    created_by, description, input, output, actions)
                SELECT account_id, gen_random_uuid(), status, hosted, name, created_at, updated_at,
                    created_by, description, input, output, actions
                FROM tasks, generate_series(2, $2) WHERE account_id = $1
                """,
                self.account,
                count,
            )
            await place(owner, first, "RUNNING")


def _is_open(sock: socket.socket) -> bool:
    state: int = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state == ESTABLISHED


async def attack(run: Callable[[Attacker], Awaitable[None]]) -> None:
    """Takes part in a measurement with this attack."""
    target = json.loads(await asyncio.to_thread(sys.stdin.readline))
    attacker = Attacker(Target(**target))
    running = asyncio.ensure_future(run(attacker))
    prepared = asyncio.create_task(attacker.prepared.wait())
    await asyncio.wait([running, prepared], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    attacker.started.set()
    await asyncio.to_thread(sys.stdin.readline)
    if running.done():
        await running
    print(json.dumps(attacker.got), flush=True)
    # Closes every connection at once.
    os._exit(0)


def main(run: Callable[[Attacker], Awaitable[None]]) -> None:
    os.nice(19)
    uvloop.run(attack(run))
