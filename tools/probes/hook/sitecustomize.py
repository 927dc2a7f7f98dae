"""Loads the modules of Rota with probes. `tools/probes` says what they are.

Python runs this first in every process that has this folder in PYTHONPATH.
"""

import builtins
import marshal
import mmap
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src"
# What is compiled for one version of Python does not work in another.
FOLDER = ROOT / "dist" / "probes" / str(sys.implementation.cache_tag)
SEEN = FOLDER / "seen"
# The bytes in it, in the modules.
NAME = "__probes__"


def compiled(source: Path) -> Path:
    return FOLDER / source.relative_to(SOURCE).with_suffix(".code")


class Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        code: CodeType = marshal.loads(compiled(Path(self.path)).read_bytes())  # noqa: S302
        return code


class Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "rota":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        # Another Rota, such as the release before this one, loads as usual.
        if (
            spec is not None
            and isinstance(spec.loader, SourceFileLoader)
            and Path(spec.loader.path).is_relative_to(SOURCE)
        ):
            spec.loader = Loader(fullname, spec.loader.path)
        return spec


def install() -> None:
    try:
        with SEEN.open("r+b") as file:
            shared = mmap.mmap(file.fileno(), 0)
    except OSError:
        # Nothing is prepared for this version of Python, or this user may not write.
        return
    # All modules can use it there, also those that Temporal loads a second time.
    setattr(builtins, NAME, shared)
    sys.meta_path.insert(0, Finder())


# `prepare` and `report` only need the names of the files.
if __name__ == "sitecustomize":
    install()
