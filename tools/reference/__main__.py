"""`make openapi` runs this after it has updated the descriptions."""

from pathlib import Path

from tools.reference import api, command_line, events, metrics, settings

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def files() -> dict[Path, str]:
    """Every generated page with its content."""
    found: dict[str, str] = {}
    for part in (settings, command_line, api, events, metrics):
        found |= part.pages()
    return {REFERENCE / name: content for name, content in found.items()}


if __name__ == "__main__":
    wanted = files()
    for path, content in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        print(path.relative_to(ROOT))
    for path in REFERENCE.rglob("*.md"):
        if path not in wanted:
            path.unlink()
