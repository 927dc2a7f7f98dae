"""Commands in the documentation exist, with their options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rota.cli import cli
from tests.docs.test_links import shown
from tools.site.pages import DOCS, ROOT

# What decisions and the changelog say was true when they were written.
PAGES = sorted(
    {ROOT / "README.md", *DOCS.rglob("*.md")}
    - {*(DOCS / "decisions").rglob("*.md"), *(DOCS / "reference").rglob("*.md")}
)
SPAN = re.compile(r"`(rota [a-z][^`]*)`")
# In a block, a command also stands behind a prompt, a variable, a pipe or a runner of containers.
LINE = re.compile(r"(?:^|[$#(|/] ?)(rota [a-z].*)$", re.MULTILINE)
BLOCK = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
ROOT_COMMAND: Any = typer.main.get_command(cli)


def commands(text: str) -> Iterator[str]:
    for block in BLOCK.findall(text):
        for found in LINE.findall(block.replace("\\\n", " ")):
            # Only this command: not what reads its output, and no comment.
            yield re.split(r" [|#>&;]|\)", found)[0]
    for found in SPAN.findall(BLOCK.sub("", text)):
        yield " ".join(found.split())


def problem(command: str) -> str | None:
    current = ROOT_COMMAND
    for word in command.split()[1:]:
        if not hasattr(current, "commands") or not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        if word not in current.commands:
            return f"{current.name or 'rota'} has no command {word}"
        current = current.commands[word]
    known = {name for each in current.params for name in (*each.opts, *each.secondary_opts)}
    used = re.findall(r"(?<= )(--[a-z][a-z-]*)", re.sub(r'"[^"]*"', "", command))
    unknown = [name for name in used if name not in known | {"--help"}]
    return f"{current.name or 'rota'} has no option {unknown[0]}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_command_in_the_documentation_exists(page: Path) -> None:
    found = {each: problem(each) for each in commands(page.read_text())}
    assert {each: why for each, why in found.items() if why} == {}


def test_the_reader_of_commands_finds_problems() -> None:
    block = "```sh\nKEY=$(rota keys make x)\nrota tasks show T --time | cat\n```\n"
    page = f"{block}and `rota tsks list`\n"
    assert [problem(each) for each in commands(page)] == [
        "keys has no command make",
        "show has no option --time",
        "rota has no command tsks",
    ]
    assert len([each for path in PAGES for each in commands(path.read_text())]) > 200
