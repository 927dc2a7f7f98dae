"""A process that stops ends its subscriptions, at whatever moment it stops."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from rota.dev.stack import Stack
from rota.events.fanout import Fanout
from rota.events.live_watch import LiveWatch
from rota.platform import redis as redis_clients
from rota.platform.ids import new_uuid

# More moments than a subscription takes.
MOMENTS = 60


async def listen_for_events(redis: Redis, moments: int) -> Callable[[], Awaitable[None]]:
    fanout = Fanout(redis)
    async with fanout.listening(new_uuid()):
        await pass_by(moments)
    return fanout.aclose


async def watch_a_text(redis: Redis, moments: int) -> Callable[[], Awaitable[None]]:
    watch = LiveWatch(redis)
    async with watch.watching(new_uuid(), lambda: None, resumes=False):
        await pass_by(moments)
    return watch.aclose


async def pass_by(moments: int) -> None:
    for _ in range(moments):
        await asyncio.sleep(0)


@pytest.mark.parametrize("begin", [listen_for_events, watch_a_text])
async def test_a_subscription_ends_at_whatever_moment_the_process_stops(
    stack: Stack, begin: Callable[[Redis, int], Awaitable[Callable[[], Awaitable[None]]]]
) -> None:
    redis = redis_clients.connect(stack.endpoints.redis_url)
    # A connection that is open makes the moments of every attempt the same.
    await redis.ping()
    for moments in range(MOMENTS):
        close = await begin(redis, moments)
        async with asyncio.timeout(5):
            await close()
        await redis.ping()
    await redis.aclose()
