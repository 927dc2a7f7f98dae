"""Replays histories with the workflows of the release that runs this file.

    python -P tests/upgrade/replay.py FOLDER

FOLDER has histories as JSON. It prints how many there are, and fails if one cannot be replayed.
"""

import asyncio
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from rota.mcp.workflow import CheckServers


def workflows() -> list[type]:
    """In an earlier release, the modules have other names."""
    is_renamed = find_spec("rota.runs.earlier_workflow") is not None
    earlier, current = (
        ("earlier_workflow", "workflow") if is_renamed else ("workflow", "slice_workflow")
    )
    return [
        import_module(f"rota.runs.{earlier}").Run,
        import_module(f"rota.runs.{current}").TaskRun,
        CheckServers,
    ]


async def main(folder: Path) -> int:
    replayer = Replayer(workflows=workflows())
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
