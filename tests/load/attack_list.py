"""The attacks. Each is made by one account of the highest tier, or by clients without a credential.

    python -m tests.load.attack_list NAME

An attack prepares, waits with `ready`, and then continues until its process ends.
"""

import asyncio
import secrets
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import httpx
import orjson

from rota.auth import secrets as key_secrets
from rota.mcp.messages import MAX_VALUES
from rota.platform import json
from tests.load.attack_schemas import SCHEMAS
from tests.load.attackers import AI_RATE, ANONYMOUS_RATE, RATE, TEXT, Attacker, main
from tests.load.raw_http import request
from tests.mcp import hostile
from tests.mcp.hostile import Writer
from tests.runs.scripted import calls, says

SERVERS = 50
TOOLS = 8
TREE = 30_000
# The JSON of this character is six times as long.
BULKY = "\x01" * TEXT
# The largest body.
BODY_BYTES = 2 * 1024 * 1024


# Schemas of tool servers


def _listing(schemas: dict[str, dict[str, Any]]) -> hostile.Behaviour:
    """A list of read-only tools with these schemas."""
    tools = [
        {
            "name": name,
            "inputSchema": {"type": "object", **schema},
            "annotations": {"readOnlyHint": True},
        }
        for name, schema in schemas.items()
    ]

    async def listed(message: dict[str, Any], writer: Writer) -> None:
        await hostile.answer(message, writer, {"tools": tools})

    return listed


async def _schema(a: Attacker, name: str) -> None:
    schema_of, arguments = SCHEMAS[name]
    tools = {f"t{n}": schema_of(n) for n in range(TOOLS)}
    while json.has_too_many_values(orjson.dumps(tools), MAX_VALUES - 100):
        tools.popitem()
    async with a.tool_server(list=_listing(tools)) as url:
        server = await a.connect(url)
        await a.ready()

        async def call(number: int) -> None:
            # Different every time, so that no result can be kept.
            await a.invoke(server, f"t{number % len(tools)}", {**arguments, "n": number})

        await a.at_rate(RATE, call)


async def many_values(a: Attacker) -> None:
    """As many values as a list of tools can have, in as many sessions as an account can have."""
    count = 8
    schema: dict[str, Any] = {"x": [[]] * (MAX_VALUES // 8 - 100)}
    tools = {f"t{n}": schema for n in range(4)}
    async with a.tool_server(list=_listing(tools)) as url:
        servers = [await a.connect(f"{url}?{n}", f"s{n}") for n in range(count)]
        await a.ready()
        await a.at_rate(RATE, lambda n: a.request("POST", f"/api/mcp/{servers[n % count]}/ping"))


async def schemas_in_runs(a: Attacker) -> None:
    tools = {f"t{n}": of(n) for n, (of, _) in enumerate(SCHEMAS.values())}

    async def script(number: int) -> str:
        """Different every time, so that no check has been made before."""
        turn = calls(
            *[
                (f"peer__t{n}", {**given, "n": number})
                for n, (_, given) in enumerate(SCHEMAS.values())
            ]
        )
        return await a.model.script(turn, turn, says("Done."))

    async with a.tool_server(list=_listing(tools)) as url:
        await a.connect(url)
        scripts = [await script(n) for n in range(100)]
        await a.ready()
        await a.at_rate(10, lambda n: a.begin_run(scripts[n % len(scripts)]))


# Large data


async def cancelled_trees(a: Attacker, count: int) -> None:
    roots = [await a.tree(TREE) for _ in range(count)]
    await a.ready()
    cancel = {"status": "CANCELLED"}
    await asyncio.gather(*[a.request("PATCH", f"/api/tasks/{root}", cancel) for root in roots])


async def slow_page_readers(a: Attacker) -> None:
    await a.many_tasks(40, BULKY)
    await a.ready()
    await a.hold(8, request("GET", "/api/tasks?limit=100", a.target.token), buffer=4_096)


async def large_pages(a: Attacker) -> None:
    await a.many_tasks(40, BULKY)
    await a.ready()
    await a.at_rate(RATE, lambda _: a.request("GET", "/api/tasks?limit=100"), at_once=16)


async def far_pages(a: Attacker) -> None:
    await a.tree(TREE)
    await a.ready()
    offsets = cycle((2**31 - 1, TREE // 2, TREE - 1_000))
    await a.at_rate(
        RATE, lambda _: a.request("GET", f"/api/tasks?limit=100&offset={next(offsets)}")
    )


async def searches(a: Attacker) -> None:
    words = " ".join(f"{n:04}" for n in range(TEXT // 5))
    await a.many_tasks(200, words)
    await a.ready()
    beginnings = "+".join("0123456789")
    text = "+".join(["write", "check", "plan", "review"] * 80)
    paths = cycle((f"/api/tasks?q={beginnings}", f"/api/agents/resolve?q={text}"))
    await a.at_rate(AI_RATE, lambda _: a.request("GET", next(paths)))


async def nested_bodies(a: Attacker) -> None:
    start, half = b'{"name": "x", "input": [', BODY_BYTES // 2 - 20
    deep = start + b"[" * half + b"]" * half + b"]}"
    wide = start + b"[]," * (2 * half // 3) + b"[]]}"
    requests = [request("POST", "/api/tasks", a.target.token, body) for body in (deep, wide)]
    await a.ready()
    await a.at_rate(RATE, lambda n: a.send(requests[n % 2]), at_once=50)


# Streams and connections


async def streams(a: Attacker) -> None:
    await a.ready()
    await asyncio.gather(*[a.stream("/api/events") for _ in range(1_800)])


async def unread_streams(a: Attacker) -> None:
    path = "/api/events?after=0"
    await a.ready()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(a.hold(100, request("GET", path, a.target.token), buffer=4_096))
        body = {"name": "x" * 1_000}
        tasks.create_task(a.at_rate(RATE / 2, lambda _: a.request("POST", "/api/tasks", body)))


async def half_headers(a: Attacker) -> None:
    await a.ready()
    await a.hold(500, b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: se")


async def half_bodies(a: Attacker) -> None:
    whole = request("POST", "/api/tasks", a.target.token, b" " * BODY_BYTES)
    await a.ready()
    await a.hold(500, whole[: BODY_BYTES // 2])


async def dripping_clients(a: Attacker) -> None:
    await a.ready()
    await a.hold(500, drip=b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"x" * 1_000)


async def idle_connections(a: Attacker) -> None:
    await a.ready()
    await a.hold(1_000)


# Tool servers


async def slow_connecting(a: Attacker) -> None:
    async with a.tool_server(initialize=hostile.hang) as url:
        await a.ready()

        async def connect(number: int) -> None:
            body = {"name": f"s{number}", "url": f"{url}?{number}"}
            await a.request("POST", "/api/mcp", body)

        await a.at_rate(RATE, connect, at_once=SERVERS)


async def slow_calls(a: Attacker) -> None:
    async with a.tool_server(call=hostile.hang) as url:
        servers = [await a.connect(f"{url}?{n}", f"s{n}") for n in range(SERVERS)]
        await a.ready()
        await a.at_rate(RATE, lambda n: a.invoke(servers[n % SERVERS], "t", {}), at_once=SERVERS)


async def slow_calls_in_runs(a: Attacker) -> None:
    async with a.tool_server(call=hostile.hang) as url:
        for n in range(SERVERS):
            await a.connect(f"{url}?{n}", f"s{n}")
        scripts = [
            await a.model.script(calls((f"s{n}__t", {})), says("Done.")) for n in range(SERVERS)
        ]
        await a.ready()
        await a.at_rate(10, lambda n: a.begin_run(scripts[n % SERVERS]))


async def slow_names(a: Attacker) -> None:
    await a.ready()

    async def connect(number: int) -> None:
        body = {"name": f"s{number}", "url": f"http://slow-{number}.test:9/mcp"}
        await a.request("POST", "/api/mcp", body)

    await a.at_rate(RATE, connect, at_once=24)


async def large_definitions(a: Attacker) -> None:
    values = [f"value-{n:034}" for n in range(1_400)]
    tools = {f"big{n}": {"properties": {"choice": {"enum": values}}} for n in range(30)}
    async with a.tool_server(list=_listing(tools)) as url:
        for n in range(SERVERS):
            # Some are refused if the definitions of an account are limited.
            await a.request("POST", "/api/mcp", {"name": f"s{n}", "url": f"{url}?{n}"})
        script = await a.model.script(calls(("s0__big0", {"choice": values[0]})), says("Done."))
        await a.ready()
        await a.at_rate(10, lambda _: a.begin_run(script))


async def large_results(a: Attacker) -> None:
    async def large(message: dict[str, Any], writer: Writer) -> None:
        text = "x" * (4 * 1024 * 1024 - 1_000)
        await hostile.answer(message, writer, {"content": [{"type": "text", "text": text}]})

    async with a.tool_server(call=large) as url:
        server = await a.connect(url)
        script = await a.model.script(calls(("peer__t", {})), says("Done."))
        await a.ready()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(a.always(8, lambda _: a.invoke(server, "t", {})))
            tasks.create_task(a.at_rate(5, lambda _: a.begin_run(script)))


# Requests


async def locked_account(a: Attacker) -> None:
    """Another transaction holds the lock of the account, as a large change of its tasks does."""
    await a.create()
    async with AsyncExitStack() as held:
        owner = await held.enter_async_context(a.owner())
        await a.ready()
        await held.enter_async_context(owner.transaction())
        await owner.execute("SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE", a.account)
        await a.at_rate(RATE, lambda _: a.request("POST", "/api/tasks", {"name": "x"}))


async def unknown_keys(a: Attacker) -> None:
    await a.ready()
    await a.at_rate(
        ANONYMOUS_RATE, lambda _: a.send(request("GET", "/api/me", key_secrets.new_secret()))
    )


async def forged_tokens(a: Attacker) -> None:
    async with httpx.AsyncClient() as http:
        person = {"sub": "attacker", "email": "attacker@example.test"}
        answer = await http.post(f"{a.target.issuer_url}/dev/token", json=person)
    sign_in = request("POST", "/api/auth/session", None, {"idToken": answer.json()["idToken"]})
    token: str = (await a.client.send(sign_in)).json()["token"]
    signed, signature = token.rsplit(".", 1)
    await a.ready()

    async def send(_: int) -> None:
        forged = secrets.token_urlsafe(64)[: len(signature)]
        await a.send(request("GET", "/api/me", f"{signed}.{forged}"))

    await a.at_rate(ANONYMOUS_RATE, send)


async def readiness(a: Attacker) -> None:
    await a.ready()
    await a.at_rate(ANONYMOUS_RATE, lambda _: a.send(request("GET", "/health/ready", None)))


async def long_queue(a: Attacker) -> None:
    await a.ready()

    async def create() -> None:
        while a.got["201"] < 5_000:
            response = await a.begin_run("")
            if response is None or response.status != 201:
                await asyncio.sleep(1)

    await asyncio.gather(*[create() for _ in range(50)])


async def repeated_keys(a: Attacker) -> None:
    await a.ready()
    body = {"name": "x"}

    async def create(number: int) -> None:
        await a.request("POST", "/api/tasks", body, Idempotency_Key=f"key-{number // 100}")

    async def burst(number: int) -> None:
        await asyncio.gather(*[create(number * 100 + n) for n in range(100)])

    await a.at_rate(RATE / 100, burst)


@dataclass(frozen=True)
class Attack:
    run: Callable[[Attacker], Awaitable[None]]
    # What the other account does besides requests: "tools", "names" or "runs".
    beside: str | None = None


async def ordinary_reads(a: Attacker) -> None:
    """For comparison: what an account of the highest tier can do without an attack."""
    await a.ready()
    await a.at_rate(RATE, lambda _: a.request("GET", "/api/me"))


ATTACKS: dict[str, Attack] = {
    "ordinary reads": Attack(ordinary_reads, "tools"),
    **{f"schema: {name}": Attack(partial(_schema, name=name), "tools") for name in SCHEMAS},
    "tools of 50,000 values": Attack(many_values, "tools"),
    "schemas in runs": Attack(schemas_in_runs, "runs"),
    "cancel a tree of 30,000": Attack(partial(cancelled_trees, count=1), "runs"),
    "cancel 4 trees of 30,000": Attack(partial(cancelled_trees, count=4), "runs"),
    "1,800 streams": Attack(streams),
    "100 unread streams": Attack(unread_streams),
    "8 unread large pages": Attack(slow_page_readers),
    "large pages": Attack(large_pages),
    "500 half-sent headers": Attack(half_headers),
    "500 half-sent bodies": Attack(half_bodies),
    "500 clients with a byte per second": Attack(dripping_clients),
    "50 slow tool servers: connect": Attack(slow_connecting, "tools"),
    "50 slow tool servers: call": Attack(slow_calls, "tools"),
    "50 slow tool servers: runs": Attack(slow_calls_in_runs, "runs"),
    "24 slow host names": Attack(slow_names, "names"),
    "50 servers with 2 MB of definitions": Attack(large_definitions, "runs"),
    "4 MB tool results": Attack(large_results, "runs"),
    "200 writes behind one lock": Attack(locked_account),
    "unknown API keys": Attack(unknown_keys),
    "forged tokens": Attack(forged_tokens),
    "/health/ready": Attack(readiness),
    "2 MiB of nested JSON": Attack(nested_bodies),
    "5,000 tasks at once": Attack(long_queue, "runs"),
    "searches": Attack(searches),
    "one idempotency key in parallel": Attack(repeated_keys),
    "far pages": Attack(far_pages),
    "1,000 idle connections": Attack(idle_connections),
}


if __name__ == "__main__":
    main(ATTACKS[sys.argv[1]].run)
