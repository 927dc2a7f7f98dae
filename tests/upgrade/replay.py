"""Replays histories with the workflows of the release that runs this file.

    python -P tests/upgrade/replay.py FOLDER

FOLDER has histories as JSON. It prints how many there are, and fails if one cannot be replayed.
"""

import asyncio
import sys
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from rota.mcp.workflow import CheckServers
from rota.runs.slice_workflow import TaskRun
from rota.runs.workflow import Run


async def main(folder: Path) -> int:
    replayer = Replayer(workflows=[Run, TaskRun, CheckServers])
    failed = 0
    paths = sorted(folder.glob("*.json"))
    for path in paths:
        history = WorkflowHistory.from_json(path.stem, path.read_text())
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        if result.replay_failure is not None:
            failed += 1
            print(f"{path.name}: {result.replay_failure!r}")
    print(f"replayed={len(paths)} failed={failed}")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(Path(sys.argv[1]))))
