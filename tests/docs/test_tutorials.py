"""The reader of tutorials understands their blocks. tests/e2e/test_tutorials.py runs them."""

from pathlib import Path

import pytest

from tests.docs.tutorials import Block, is_printed, read, run, script

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGE = """\
Save this as `server.py`:

```py
run(port=8099)
```

Start it in another terminal:

```sh
python server.py
```

```sh
echo one; echo two
```

It prints:

```text
one
…
```

```console
$ not run
```
"""


def test_blocks_are_run_saved_or_shown() -> None:
    tutorial = read(PAGE)
    assert tutorial.files == {"server.py": "run(port=8099)\n"}
    assert tutorial.blocks == [
        Block("python server.py\n", "sh", beside=True),
        Block("echo one; echo two\n", "sh", prints=["one\n…\n"]),
    ]
    assert "http://127.0.0.1:8099/" in script(tutorial)
    assert "not run" not in script(tutorial)


def test_a_block_that_fails_fails_the_tutorial(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="gone"):
        run(read("```sh\nls gone\n```\n\n```sh\necho never\n```\n"), tmp_path, {})
    waits = read(
        "```sh\nfollow() { return 5; }\nfollow --until-review\n```\n\n```py\nprint(7)\n```\n"
    )
    assert run(waits, tmp_path, {}) == ["", "7\n"]


@pytest.mark.parametrize(
    ("expected", "printed", "found"),
    [
        ("a b", "x\na   b  \n", True),
        ("a\nc", "a\nb\nc", False),
        ("a\n…\nc", "a\nb\nc", True),
        ("a\n…\nc", "a\nc", True),
        ("a…\nc", "a b\nc", True),
        ("a…\nc", "a\nb\nc", False),
        ("added 1", "│ added   │ 1 │", True),
        ("cost $0.…", "cost $0.013", True),
        ("missing", "a", False),
    ],
)
def test_the_output_is_compared(expected: str, printed: str, found: bool) -> None:
    assert is_printed(expected, printed) is found


@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.stem)
def test_every_tutorial_has_blocks_that_run_and_outputs_that_are_compared(page: Path) -> None:
    tutorial = read(page.read_text())
    assert len(tutorial.blocks) >= 2
    assert any(block.prints for block in tutorial.blocks)
