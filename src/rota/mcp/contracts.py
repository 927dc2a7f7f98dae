"""Input and result of the sweep activity. Temporal stores them, so they contain only numbers."""

from dataclasses import dataclass

WORKFLOW = "check-tool-servers"
SWEEP = "sweep-tool-servers"


@dataclass(frozen=True, slots=True)
class SweepInput:
    batch: int


@dataclass(frozen=True, slots=True)
class SweepResult:
    checked: int
    more: bool
