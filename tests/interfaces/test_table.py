"""docs/interfaces.md has what a run of every scenario through every interface produced."""

from pathlib import Path

from tests.interfaces import table
from tests.interfaces.scenarios import SCENARIOS
from tests.interfaces.work import INTERFACES


def test_the_page_has_every_scenario_and_interface_and_each_is_the_same() -> None:
    # If this fails: python -m tests.interfaces --write docs/interfaces.md
    assert table.in_page() == table.written(table.expected())


def test_a_difference_is_written_into_the_page(tmp_path: Path) -> None:
    page = tmp_path / "interfaces.md"
    page.write_text(table.PAGE.read_text())
    table.write({**table.expected(), ("finishes", "mcp"): False}, page)
    [row] = [line for line in page.read_text().splitlines() if line.startswith("| A task is cre")]
    assert row.count(table.DIFFERS) == 1
    table.write(table.expected(), page)
    assert page.read_text() == table.PAGE.read_text()


def test_what_an_interface_does_otherwise_is_explained() -> None:
    for each in SCENARIOS.values():
        assert each.others.keys() <= INTERFACES.keys() - {"rest"}
        assert all(other.refused or other.instead for other in each.others.values())
        assert all(other.why for other in each.others.values())
