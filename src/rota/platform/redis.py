"""Clients for Redis, over TLS if the URL begins with rediss://."""

from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from rota.platform.start_checks import StartRefused


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
