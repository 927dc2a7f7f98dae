"""CI names the folders of each lane, so a new folder could be forgotten."""

from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_ci_runs_every_folder_with_tests() -> None:
    script = (ROOT / ".ci" / "run").read_text().split()
    folders = {path.parent.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/*/**/test_*.py")}
    assert len(folders) > 20
    assert [name for name in sorted(folders) if f"tests/{name}" not in script] == []
