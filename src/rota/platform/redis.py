"""Clients for Redis, over TLS if the URL begins with rediss://."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from rota.platform.start_checks import StartRefused

# How long a task that was cancelled has before it is cancelled again.
_CANCEL_AGAIN_S = 0.1


def connect(url: str, ca_file: Path | None = None, **options: Any) -> Redis:
    """The URL can have a user name and a password. Connects on first use."""
    if ca_file is not None and url.startswith("rediss://"):
        options["ssl_ca_certs"] = str(ca_file)
    return Redis.from_url(url, **options)


async def check(client: Redis) -> None:
    """Fails if Redis does not respond. Refuses a Redis Cluster: scripts and messages of the
    service expect all keys on one server."""
    try:
        found = await client.info("cluster")
    except NoPermissionError:
        # A user without the right to INFO.
        await client.ping()
        return
    if found.get("cluster_enabled"):
        raise StartRefused(
            "ROTA_REDIS_URL is a Redis Cluster, which is not supported. Use one server, or one "
            "with replicas."
        )


async def end(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancels tasks that talk to Redis, and waits until they have ended.

    In Python 3.11, `asyncio.wait_for`, with which the client writes to its socket, loses a
    cancellation that arrives at the same moment as its result. The task then goes on, so it is
    cancelled until it has ended.
    """
    left = {task for task in tasks if task is not None and not task.done()}
    while left:
        for task in left:
            task.cancel()
        ended, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN_S)
        for task in ended:
            if not task.cancelled():
                # Mark it as retrieved. Nobody waits for the task.
                task.exception()
