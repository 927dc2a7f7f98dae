"""What the engine is given and gives back: numbers, never a name or a text."""

from dataclasses import dataclass

WORKFLOW = "check-tool-servers"
SWEEP = "sweep-tool-servers"


@dataclass(frozen=True, slots=True)
class SweepOrder:
    batch: int


@dataclass(frozen=True, slots=True)
class SweepReport:
    checked: int
    more: bool
