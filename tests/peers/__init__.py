"""Programs of others that the tests talk to, from npm."""

import subprocess
from pathlib import Path


def installed(name: str) -> Path:
    """The folder of a peer, with what it needs."""
    folder = Path(__file__).parent / name
    if not (folder / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--silent"], cwd=folder, check=True)
    return folder
