"""Builds the site with zensical, in strict mode."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.site.pages import ROOT, copy_to

ZENSICAL = str(Path(sys.executable).parent / "zensical")
CONFIGURATION = "zensical.toml"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Built:
    code: int
    printed: str
    folder: Path


def source_of(folder: Path) -> Path:
    """Where the generator finds the pages, as in its configuration."""
    return folder / "dist" / "docs-source"


def build(folder: Path) -> Built:
    """Builds the site below the folder. A broken link or any other warning fails the build."""
    site = folder / "dist" / "docs"
    shutil.rmtree(site, ignore_errors=True)
    copy_to(source_of(folder))
    if folder != ROOT:
        shutil.copy(ROOT / CONFIGURATION, folder)
    done = subprocess.run(
        (ZENSICAL, "build", "--strict", "--clean"),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Built(done.returncode, _COLOUR.sub("", done.stdout).strip(), site)
