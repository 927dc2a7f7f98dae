"""No link in the documentation is broken, on GitHub and on the site."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.reference.markdown import anchor
from tools.site.pages import DOCS, ROOT, links, sources, without_code

OTHERS = ("README.md", "AGENTS.md", "CODE_OF_CONDUCT.md")
PAGES = sorted({*sources().values(), *(ROOT / name for name in OTHERS)})
HTML = re.compile(r'(?:src|srcset|href)="([^"]+)"')


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def anchors(path: Path) -> Counter[str]:
    """The anchors of the headings, and how many headings have each."""
    headings = re.findall(r"^#{1,6} (.+)$", without_blocks(path.read_text()), re.MULTILINE)
    return Counter(anchor(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found)) for found in headings)


def without_blocks(text: str) -> str:
    return re.sub(r"^(```|~~~).*?^\1[ \t]*$", "", text, flags=re.DOTALL | re.MULTILINE)


def problems(page: Path, target: str) -> str | None:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None if parts.scheme in ("https", "http", "mailto") else "its scheme is unknown"
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not file.is_relative_to(ROOT) or not file.exists():
        return "the file does not exist"
    if file.is_dir():
        file /= "README.md"
    if not parts.fragment:
        return None
    if file.suffix != ".md" or not file.exists():
        return "only pages have anchors"
    headings = anchors(file)[parts.fragment]
    # GitHub and the site number equal headings in different ways.
    return {0: "no heading has this anchor", 1: None}.get(headings, "several headings have it")


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    targets = [found[3] for found in links(text)] + HTML.findall(without_code(text))
    broken = {target: found for target in targets if (found := problems(page, target))}
    assert broken == {}


def test_the_reader_of_links_finds_them_and_leaves_code_alone() -> None:
    text = "[a](b.md) ![c](d.png) `[e](f.md)` [`g`](h.md#i)\n```\n[j](k.md)\n```\n"
    assert [found[3] for found in links(text)] == ["b.md", "d.png", "h.md#i"]
    page = DOCS / "tasks.md"
    assert problems(page, "no-such-page.md") == "the file does not exist"
    assert problems(page, "runs.md#no-such-heading") == "no heading has this anchor"
    assert problems(page, "runs.md") is None
    assert sum(len(links(path.read_text())) for path in PAGES) > 500
