"""What the regular checks of tool servers cost, for tests/load/costs.py."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rota.mcp.checks import SCHEDULE_ID
from tests.load.fleet import Fleet, Metered
from tests.mcp.conftest import connect
from tests.service import Person, free_port, listens

# Claimed servers are due again after 5 minutes, checked ones after 15.
CHECKED = """
    SELECT count(*) FROM mcp_servers WHERE check_due_at > now() + interval '6 minutes'
"""


@asynccontextmanager
async def tool_server() -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.load.mcp_bench", "--serve", str(port)
    )
    try:
        async with asyncio.timeout(60):
            while not await listens(port):
                await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def checks(fleet: Fleet, people: Sequence[Person], rounds: int) -> Metered:
    """The cost of one check of one tool server with one tool."""
    schedule = (await fleet.temporal()).get_schedule_handle(SCHEDULE_ID)
    async with tool_server() as url, fleet.service.owner() as connection:
        for person in people:
            await connect(person, url)

        async def check_all() -> None:
            await connection.execute("UPDATE mcp_servers SET check_due_at = now()")
            await schedule.trigger()
            async with asyncio.timeout(120):
                while await connection.fetchval(CHECKED) < len(people):
                    await asyncio.sleep(0.1)

        await check_all()
        async with fleet.metered(rounds * len(people)) as result:
            for _ in range(rounds):
                await check_all()
    return result[0]
