"""A worker with the scripted tools, in its own process.

    python -m tests.runs.worker_main

Settings come from ROTA_* variables, the address of the tool server from TEST_TOOLS_URL.
It logs `worker_ready` when it is ready.
"""

import asyncio
import os
import signal

import uvloop

from rota.platform.settings import Settings
from rota.platform.telemetry import observe
from rota.worker import run_worker
from tests.runs.tools import ScriptedTools


async def work(settings: Settings) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    url = os.environ.get("TEST_TOOLS_URL")
    fixed = bool(os.environ.get("TEST_TOOLS_FIXED"))
    await run_worker(settings, stop, sources=[ScriptedTools(url, fixed=fixed)] if url else [])


def main() -> None:
    settings = Settings()
    observe(settings, "rota-worker")
    uvloop.run(work(settings))


if __name__ == "__main__":
    main()
