"""Workers of this release and of the one before it share their queues."""

import pytest

from tests.upgrade import checks
from tests.upgrade.release import BEFORE, ROOT, Release, is_known, read_at, this_release

MISSING = f"this clone lacks the commit {BEFORE}, so the releases were NOT compared"


def test_the_names_that_a_worker_registers_are_found() -> None:
    found = checks.names((ROOT / "src" / "rota" / "worker.py").read_text())
    assert "TaskRun" in found["SLICES_QUEUE"]["workflows"]
    assert "slices.run" in found["SLICES_QUEUE"]["activities"]


def test_a_name_that_only_one_release_has_on_a_queue_is_found() -> None:
    worker = "Worker(client, task_queue=Q, workflows=[Run], activities=[a.one{more}])"
    before, after = worker.format(more=""), worker.format(more=", a.two")
    assert checks.changed_names(before, after) == ["Q: activities: a.two"]
    assert checks.changed_names(after, before) == ["Q: activities: a.two"]
    assert checks.changed_names(before, "Worker(c, task_queue=R, workflows=[], activities=[])")
    both = f"{before}\nWorker(client, task_queue=R, workflows=[New], activities=[])"
    assert checks.changed_names(before, both) == []


@pytest.mark.skipif(not is_known(BEFORE), reason=MISSING)
def test_both_releases_can_do_all_work_of_the_queues_that_they_share() -> None:
    """A new workflow or activity needs a queue of its own, which older workers do not serve."""
    before = read_at(BEFORE, "src/rota/worker.py")
    after = (ROOT / "src" / "rota" / "worker.py").read_text()
    assert checks.changed_names(before, after) == []


def test_a_command_of_a_release_does_not_find_the_modules_of_the_current_folder() -> None:
    release = this_release()
    assert isinstance(release, Release)
    assert "-P" in release.command("rota.cli", "serve")
    assert str(ROOT / "src") in release.variables()["PYTHONPATH"]
