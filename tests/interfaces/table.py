"""The table in docs/interfaces.md: every scenario through every interface."""

from collections.abc import Mapping
from pathlib import Path

from tests.interfaces.scenarios import SCENARIOS, Scenario
from tests.interfaces.work import INTERFACES

PAGE = Path(__file__).parents[2] / "docs" / "interfaces.md"
BEGIN = "<!-- Written by `python -m tests.interfaces`. Do not edit the lines below. -->"
END = "<!-- The end of the written lines. -->"
DIFFERS, NOT_RUN = "differs", "not run"

# For each scenario and interface, whether everything was as it must be.
Results = Mapping[tuple[str, str], bool]


def expected() -> Results:
    """What a run has to produce."""
    return {(name, kind): True for name in SCENARIOS for kind in INTERFACES}


def written(results: Results) -> str:
    """The table and its notes."""
    notes: list[str] = []
    head = ["Scenario", "Result", *INTERFACES.values()]
    rows = [head, ["---"] * len(head)]
    rows += [_row(each, results, notes) for each in SCENARIOS.values()]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    numbered = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join([BEGIN, "", *lines, "", *numbered, "", END])


def _row(scenario: Scenario, results: Results, notes: list[str]) -> list[str]:
    codes = ", ".join(f"`{code}`" for code in dict.fromkeys(scenario.refused))
    cells = [scenario.title, codes or "done"]
    for kind in INTERFACES:
        same = results.get((scenario.name, kind))
        if not same:
            cells.append(NOT_RUN if same is None else DIFFERS)
        elif (other := scenario.others.get(kind)) is None:
            cells.append("same")
        else:
            note = f"{_sentence(other.why)}"
            if note not in notes:
                notes.append(note)
            shown = ", ".join(f"`{code}`" for code in other.refused) or other.instead
            cells.append(f"{shown} ({notes.index(note) + 1})")
    return cells


def _sentence(why: str) -> str:
    return f"{why[0].upper()}{why[1:]}."


def in_page() -> str:
    """The lines of the page that a run has written."""
    text = PAGE.read_text()
    return BEGIN + text.partition(BEGIN)[2].partition(END)[0] + END


def write(results: Results, page: Path) -> None:
    text = page.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    page.write_text(before + written(results) + after)
