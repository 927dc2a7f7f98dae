"""The documentation site: strict, complete, the same as on GitHub, and without other servers."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tools.site import build
from tools.site.pages import DOCS, ROOT, render, sources

CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
# Their indexes list them.
INDEXED = ("decisions/", "runbooks/")
SECTIONS = ["Home", "Tutorials", "How-to guides", "Reference", "Explanation"]
# What differs if a page is understood in another way.
ELEMENTS = ("h1", "h2", "h3", "li", "ol", "ul", "pre", "table", "tr", "img", "strong", "em")


def nav(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from [value] if isinstance(value, str) else nav(value)


def built(site: Path, name: str) -> str:
    page = re.sub(r"(^|/)README\.md$", r"\1index.md", name).removesuffix(".md")
    [article] = re.findall(r"<article.*?</article>", (site / f"{page}.html").read_text(), re.S)
    return str(article)


def counts(html: str) -> dict[str, int]:
    return {name: len(re.findall(rf"<{name}[ >]", html)) for name in ELEMENTS}


def test_every_page_has_a_place_in_the_navigation() -> None:
    placed = list(nav(CONFIGURATION["nav"]))
    assert len(placed) == len(set(placed))
    wanted = {
        name for name in sources() if not name.startswith(INDEXED) or name.endswith("README.md")
    }
    missing = sorted(wanted - set(placed))
    assert missing == [], "Add them to nav in zensical.toml."
    assert sorted(set(placed) - wanted) == [], "These pages do not exist."


def test_the_navigation_has_the_four_kinds_of_pages() -> None:
    assert [next(iter(entry)) for entry in CONFIGURATION["nav"]] == SECTIONS


def test_pages_have_the_same_structure_on_github_and_on_the_site(site: Path) -> None:
    github = MarkdownIt("commonmark").enable("table")
    different = {}
    for name, path in sources().items():
        on_github, on_site = counts(github.render(path.read_text())), counts(built(site, name))
        if on_github != on_site:
            different[name] = [
                (element, on_github[element], on_site[element])
                for element in ELEMENTS
                if on_github[element] != on_site[element]
            ]
    assert different == {}


def test_the_site_loads_nothing_from_other_servers(site: Path) -> None:
    loaded = re.compile(
        r'<(?:script|link|img|source|iframe)[^>]+(?:src|href|srcset)="?(https?:[^" >]+)'
    )
    for page in site.rglob("*.html"):
        assert loaded.findall(page.read_text()) == [], page.name
    for sheet in site.rglob("*.css"):
        assert re.findall(r"url\(['\"]?https?:", sheet.read_text()) == [], sheet.name


def test_a_broken_link_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_broken_link(folder: Path) -> None:
        for name in nav(CONFIGURATION["nav"]):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("# A page\n\n[Broken](no-such-page.md)\n")

    monkeypatch.setattr(build, "copy_to", with_broken_link)
    result = build.build(tmp_path)
    assert result.code != 0
    assert "page does not exist" in result.printed


def test_links_to_files_that_are_not_pages_become_text() -> None:
    text = "[SDK](../sdks/python/README.md#errors), [files](../openapi/), [all](decisions/)\n"
    assert render("example.md", DOCS, text) == (
        "[SDK](python-sdk.md#errors), files, [all](decisions/README.md)\n"
    )


def test_paragraphs_of_numbered_items_are_indented_for_the_generator() -> None:
    text = "1. One:\n\n   two\n2. Three\n\nFour\n"
    assert render("example.md", DOCS, text) == "1. One:\n\n    two\n\n2. Three\n\nFour\n"
