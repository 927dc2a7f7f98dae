"""The pages of the site, as the generator reads them.

The pages are written for GitHub, where a page in `docs` can link to any file of the repository. The
generator only knows pages in one folder. So the pages are copied, those outside `docs` get a place
among them, and links follow. A link to a file that is not a page becomes its text.
"""

import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages outside `docs`, with their names on the site.
OUTSIDE = {
    "sdks/python/README.md": "python-sdk.md",
    "sdks/typescript/README.md": "typescript-sdk.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "vulnerabilities.md",
}
_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_INDENTED_CODE = re.compile(r"^([ \t]+)(```|~~~).*?^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def without_code(text: str) -> str:
    """The text with spaces in the place of code, so that positions stay."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    return _CODE.sub(blank, _INDENTED_CODE.sub(blank, text))


def links(text: str) -> list[re.Match[str]]:
    """Each link and picture. The groups are: `!` of a picture, the text, the target."""
    # A code span in the text of a link is part of it, so only the start must be outside code.
    plain = without_code(text)
    return [
        found
        for found in _LINK.finditer(text)
        if plain[found.start()] in "![" and plain[found.start(3) : found.end(3)].strip()
    ]


def sources() -> dict[str, Path]:
    """Every page by its name on the site."""
    found = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    return found | {name: ROOT / outside for outside, name in OUTSIDE.items()}


def copy_to(folder: Path) -> None:
    """Writes every page and picture to `folder`, and nothing that did not change."""
    wanted = {
        name: render(name, path.parent, path.read_text()).encode()
        for name, path in sources().items()
    }
    pictures = (path for path in DOCS.rglob("*") if path.is_file() and path.suffix != ".md")
    wanted |= {path.relative_to(DOCS).as_posix(): path.read_bytes() for path in pictures}
    for name, content in wanted.items():
        path = folder / name
        if path.exists() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in wanted:
            path.unlink()


def render(name: str, folder: Path, text: str) -> str:
    """The text of a page in `folder` of the repository, for its place on the site."""
    text = _indented(text)
    for found in reversed(links(text)):
        picture, label, target = found.groups()
        place = _place(name, folder, target)
        replaced = label if place is None else f"{picture}[{label}]({place})"
        text = text[: found.start()] + replaced + text[found.end() :]
    return text


def _indented(text: str) -> str:
    """Numbered items as the generator needs them: what belongs to an item has four spaces before
    it, where GitHub needs three, and an empty line follows an item of several paragraphs."""
    lines: list[str] = []
    in_code = in_item = has_paragraphs = False
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            in_code = not in_code
        if re.match(r"\d+\. ", line) and not in_code:
            if in_item and has_paragraphs and lines[-1].strip():
                lines.append("\n")
            in_item, has_paragraphs = True, False
        elif not line.strip():
            has_paragraphs = True
        elif not line.startswith(" "):
            in_item = False
        lines.append(f" {line}" if in_item and line.startswith("   ") else line)
    return "".join(lines)


def _place(name: str, folder: Path, target: str) -> str | None:
    """The target as seen from the page's place on the site, or None if it has none there."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not parts.path:
        return target
    file = Path(os.path.normpath(folder / parts.path))
    if file.is_dir() and (file / "README.md").exists():
        file /= "README.md"
    if file.is_relative_to(DOCS):
        place = file.relative_to(DOCS).as_posix()
    else:
        found = OUTSIDE.get(file.relative_to(ROOT).as_posix())
        if found is None:
            return None
        place = found
    relative = os.path.relpath(place, PurePosixPath(name).parent)
    return f"{relative}#{parts.fragment}" if parts.fragment else relative
