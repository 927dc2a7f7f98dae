"""The SDK as a user has it: a wheel in an environment of its own, outside of the repository."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.installed import PYTHON, REPOSITORY, tracked_files, uv

FOLDER = REPOSITORY / "sdks" / "python"


@dataclass(frozen=True)
class Example:
    """A block of Python in the README."""

    name: str
    code: str

    @classmethod
    def all(cls) -> list["Example"]:
        text = (FOLDER / "README.md").read_text()
        sections = re.split(r"^#+ (.*)$", text, flags=re.MULTILINE)
        return [
            cls(title.lower().replace(" ", "-"), code)
            for title, part in zip(sections[1::2], sections[2::2], strict=True)
            for code in re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        ]


@dataclass(frozen=True)
class Sdk:
    wheel: Path
    archive: Path
    folder: Path

    @classmethod
    def install(cls, folder: Path) -> "Sdk":
        source = folder / "source"
        for name in tracked_files("sdks/python"):
            copy = source / Path(name).relative_to("sdks/python")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((REPOSITORY / name).read_bytes())
        # The wheel is built from the source distribution, so that one is complete too.
        uv("build", "--no-build-isolation", "--out-dir", str(folder), str(source))
        [wheel], [archive] = folder.glob("*.whl"), folder.glob("*.tar.gz")
        uv("venv", "--python", PYTHON, str(folder / "environment"))
        lock = str(REPOSITORY / "requirements.lock")
        python = str(folder / "environment" / "bin" / "python")
        uv("pip", "install", "--python", python, "--constraint", lock, str(wheel))
        return cls(wheel, archive, folder)

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    def run(self, *arguments: str, **variables: str) -> str:
        done = subprocess.run(
            (str(self.python), *arguments),
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder), **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
