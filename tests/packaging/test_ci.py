"""CI runs every folder of tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_folder_of_tests_is_in_a_lane() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    folders = {test.parent.relative_to(ROOT) for test in ROOT.glob("tests/*/test_*.py")}
    missing = [folder for folder in folders if not re.search(rf"{folder}(\s|$)", script)]
    assert folders
    assert not missing
