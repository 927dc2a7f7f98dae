"""The processor time and I/O of process trees, from /proc.

Processor time does not depend on who else uses the machine, except through shared caches. So it
is a better measure of cost than elapsed time on a machine that others use too.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Use:
    cpu_ms: float = 0
    read_bytes: int = 0
    written_bytes: int = 0

    def __add__(self, other: "Use") -> "Use":
        return Use(
            self.cpu_ms + other.cpu_ms,
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
        )

    def __sub__(self, other: "Use") -> "Use":
        return Use(
            self.cpu_ms - other.cpu_ms,
            self.read_bytes - other.read_bytes,
            self.written_bytes - other.written_bytes,
        )


def _stat(pid: int) -> tuple[int, float] | None:
    """The parent and the processor time of a process, with that of its children that ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name is in parentheses and can contain spaces.
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) * TICK_MS


def _io(pid: int) -> tuple[int, int]:
    """The bytes that a process, and its children that ended, read from disk and wrote to it."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return 0, 0
    found = dict(line.split(": ") for line in lines)
    return int(found["read_bytes"]), int(found["write_bytes"])


def measure(parts: Mapping[str, Iterable[int]]) -> dict[str, Use]:
    """The use of each part so far. A part is a list of the roots of process trees."""
    found = {
        int(name): stat
        for name in os.listdir("/proc")
        if name.isdigit() and (stat := _stat(int(name))) is not None
    }
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in found.items():
        children.setdefault(parent, []).append(pid)
    return {
        name: sum((_tree(pid, found, children) for pid in roots), Use())
        for name, roots in parts.items()
    }


def _tree(
    root: int, found: Mapping[int, tuple[int, float]], children: Mapping[int, list[int]]
) -> Use:
    total, left = Use(), [root]
    while left:
        pid = left.pop()
        if pid in found:
            total += Use(found[pid][1], *_io(pid))
            left += children.get(pid, ())
    return total


def difference(before: Mapping[str, Use], after: Mapping[str, Use]) -> dict[str, Use]:
    return {name: after[name] - before[name] for name in after}
