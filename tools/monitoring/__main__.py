"""`make monitoring` runs this before it checks the files."""

from pathlib import Path

from tools.monitoring import service_boards, slos, work_boards

BOARDS = (
    service_boards.TRAFFIC,
    work_boards.RUNS,
    work_boards.MONEY,
    work_boards.TOOL_SERVERS,
    work_boards.RELAY,
    service_boards.ACCOUNTS,
    service_boards.OBJECTIVES_BOARD,
)
MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"


def files() -> dict[Path, str]:
    """Every generated file with its content."""
    found = {MONITORING / "boards" / f"{board.uid}.json": board.as_json() for board in BOARDS}
    return found | {MONITORING / "rules" / "slos.yaml": slos.as_yaml()}


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content)
        print(path.relative_to(Path.cwd()))
