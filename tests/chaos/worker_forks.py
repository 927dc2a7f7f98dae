"""Workers that kill themselves at a chosen commit and are replaced at once.

    python -m tests.chaos.worker_forks FOLDER

Every FOLDER/NAME.lane has the environment variables of one worker. Each worker is a fork of this
process, which has already imported everything, so a replacement starts quickly. FOLDER/NAME.kill
selects where that worker dies next, for example
`{"at": "slice", "number": 3, "when": "before", "signal": 9}`: before its third commit in activities
of that name. With the signal SIGSTOP the worker is only paused. It is replaced all the same, and
FOLDER/NAME.paused has its process ID. The product has no hook for this: only the class of the
database connections is replaced.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg
from temporalio import activity

from rota.platform.settings import Settings
from rota.platform.telemetry import configure_logging
from rota.worker import run_worker
from tests.runs.tools import ScriptedTools

PR_SET_PDEATHSIG = 1


class KillSwitch:
    """Counts the commits of each kind in each run, and kills the process at the chosen one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: Counter[tuple[str, str]] = Counter()

    def count(self, run: str, kind: str) -> int:
        self._seen[run, kind] += 1
        return self._seen[run, kind]

    def reach(self, kind: str, number: int, when: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            selected = json.loads(self._file.read_text())
            what = selected.pop("signal")
            if selected == {"at": kind, "number": number, "when": when}:
                self._file.unlink()
                os.kill(os.getpid(), what)


class KillableConnection(asyncpg.Connection):  # type: ignore[misc]
    kill_switch: KillSwitch

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        if query.startswith("BEGIN"):
            self._writes, self._relays = "READ ONLY" not in query, False
        if "outbox SET kind" in query or "DELETE FROM outbox" in query:
            self._relays = True
        # The entries of the audit trail are appended in the same message.
        if not query.endswith("COMMIT") or not self._writes:
            return str(await super().execute(query, *args, timeout=timeout))
        if activity.in_activity():
            info = activity.info()
            kind = info.activity_type
            number = self.kill_switch.count(info.workflow_id or "", kind)
        elif self._relays:
            kind, number = "relay", 1
        else:
            kind, number = "other", 0
        self.kill_switch.reach(kind, number, "before")
        answer = await super().execute(query, *args, timeout=timeout)
        self.kill_switch.reach(kind, number, "after")
        return str(answer)


def work(lane: Path) -> None:
    os.environ.update(json.loads(lane.read_text()))
    KillableConnection.kill_switch = KillSwitch(lane.with_suffix(".kill"))
    create_pool = asyncpg.create_pool
    asyncpg.create_pool = lambda *args, **options: create_pool(
        *args, **options, connection_class=KillableConnection
    )
    settings = Settings()
    configure_logging(settings.log_level, settings.log_format)
    sources = [ScriptedTools(os.environ["TEST_TOOLS_URL"])]
    asyncio.run(run_worker(settings, asyncio.Event(), sources=sources))


def fork(lane: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        work(lane)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def main(folder: Path) -> None:
    lanes = {fork(lane): lane for lane in sorted(folder.glob("*.lane"))}
    (folder / "ready").touch()
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        lane = lanes.pop(pid, None)
        if lane is None:
            continue  # It was paused and replaced, and has died now.
        # A worker that cannot start must not keep the machine busy.
        time.sleep(0.1)
        lanes[fork(lane)] = lane
        if os.WIFSTOPPED(status):
            lane.with_suffix(".paused").write_text(str(pid))
            continue
        with lane.with_suffix(".deaths").open("a") as deaths:
            deaths.write(f"{time.time()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
