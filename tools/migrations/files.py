"""The migrations, and the SQL files that each of them runs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERSIONS = Path(__file__).parents[2] / "migrations" / "versions"

# A call such as attributes["run_concurrently"](…), with the file that it names, if any.
_RUN = re.compile(r'\["(run_sql|run_concurrently)"\]\((?:str\(.*?"([\w.]+\.sql)"\)|__file__)')
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_BODY = re.compile(r"\$(\w*)\$.*?\$\1\$|BEGIN ATOMIC.*?\bEND;", re.DOTALL)


@dataclass(frozen=True)
class SqlFile:
    """The statements of a migration, and whether they run outside a transaction."""

    name: str
    text: str
    concurrent: bool

    @property
    def code(self) -> str:
        """Without comments. Lines keep their numbers."""
        return _COMMENT.sub(_blank, self.text)

    @property
    def top(self) -> str:
        """Also without the bodies of functions and DO blocks, which run when they are called."""
        return _BODY.sub(_blank, self.code)

    @property
    def number(self) -> str:
        return self.name[:4]

    def line_of(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())


def sql_files(folder: Path = VERSIONS) -> Iterator[SqlFile]:
    """Every SQL file, in the order of the migrations."""
    for script in sorted(folder.glob("[0-9]*_*.py")):
        for how, named in _RUN.findall(script.read_text()):
            path = folder / named if named else script.with_suffix(".sql")
            yield SqlFile(path.name, path.read_text(), how == "run_concurrently")
