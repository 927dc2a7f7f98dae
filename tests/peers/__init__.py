"""Third-party programs from npm that the tests run against."""

import subprocess
from pathlib import Path


def installed(name: str) -> Path:
    """The folder of a program, with its dependencies installed."""
    folder = Path(__file__).parent / name
    if not (folder / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--silent"], cwd=folder, check=True)
    return folder
