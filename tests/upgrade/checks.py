"""What must hold at the end: invariants, the ledger, the audit trail, histories, and names."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rota.platform import ids
from tests.chaos.invariants import violations
from tests.runs.runner import until
from tests.upgrade.fleet import Installation
from tests.upgrade.load import Load
from tests.upgrade.release import Release

REPLAY = Path(__file__).with_name("replay.py")


async def invariants(installation: Installation, load: Load) -> dict[str, int]:
    acknowledged = set(load.tasks)
    for row in await installation.query("SELECT id FROM tasks WHERE parent_task_id IS NOT NULL"):
        # The agent created it, not a client.
        acknowledged.add(ids.to_wire("task", row["id"]))
    return await until(
        lambda: violations(installation, acknowledged),
        # The relay may still be handling the last instruction.
        lambda wrong: not wrong["instructions still in the outbox"],
        deadline_s=30,
    )


async def commands(installation: Installation, release: Release) -> dict[str, int]:
    """The operator's own checks, as the release has them. 0: it found nothing."""
    found = {}
    for command in (("ledger", "verify"), ("audit", "verify")):
        code, output = await release.run(
            installation.variables(None), release.command("rota.cli", "admin", *command)
        )
        name = f"rota admin {' '.join(command)}, {release.name}"
        found[name] = code
        if code:
            print(f"{name}: {code}\n{output}")
    return found


async def save_histories(
    installation: Installation, releases: Sequence[Release], folder: Path
) -> int:
    """Every history in Temporal, and those that both releases have stored."""
    client = await installation.temporal()
    folder.mkdir(parents=True)
    saved = 0
    async for execution in client.list_workflows():
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        text = (await handle.fetch_history()).to_json()
        (folder / f"{saved:05}.json").write_text(text)
        saved += 1
    for release in releases:
        for path in (release.root / "tests" / "runs" / "histories").rglob("*.json"):
            name = f"{release.name}-{path.parent.name}-{path.name}"
            (folder / name).write_text(path.read_text())
    return saved


async def replay(release: Release, folder: Path) -> tuple[int, str]:
    command = [str(release.python), "-P", str(REPLAY), str(folder)]
    return await release.run({}, command)


def names(worker: str) -> dict[str, dict[str, set[str]]]:
    """Which workflows and activities the source of a worker registers on each queue."""
    found: dict[str, dict[str, set[str]]] = {}
    for node in ast.walk(ast.parse(worker)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Worker":
            given: dict[str | None, Any] = {each.arg: each.value for each in node.keywords}
            found[ast.unparse(given["task_queue"])] = {
                kind: {ast.unparse(each) for each in given[kind].elts}
                for kind in ("workflows", "activities")
            }
    assert found
    return found


def changed_names(before: str, after: str) -> list[str]:
    """Names that one of the releases cannot run. A worker of either can get the work of a queue."""
    old, new = names(before), names(after)
    return [
        f"{queue}: {kind}: {name}"
        for queue in old
        for kind in old[queue]
        for name in sorted(old[queue][kind] ^ new.get(queue, {}).get(kind, set()))
    ]
