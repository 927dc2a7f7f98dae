"""Reads the blocks of a tutorial, and runs them as a reader would.

`sh` and `py` blocks are run, in one shell. A block after "Save this as `PATH`:" becomes a file. A
`text` block says what the block before it prints: its lines in this order, where `…` stands for
anything and spaces do not count. A block after a paragraph with "in another terminal" runs beside
the others. All other blocks, such as `console`, are only shown.
"""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"Save this as `([^`]+)`[^\n]*:\n+\Z")
BESIDE = "in another terminal"
# Exit codes that a page expects: a task waits for a person; a check says what to do.
EXPECTED_EXITS = {"--until-review": 5, "rota admin doctor": 1}
MARK = "@@block@@"
DEADLINE_S = 300


@dataclass
class Block:
    code: str
    language: str
    beside: bool = False
    prints: list[str] = field(default_factory=list)


@dataclass
class Tutorial:
    blocks: list[Block]
    files: dict[str, str]


def read(text: str) -> Tutorial:
    blocks: list[Block] = []
    files: dict[str, str] = {}
    end = 0
    for found in FENCE.finditer(text):
        before, language, code = text[end : found.start()], found[1], found[2]
        end = found.end()
        if saved := SAVED.search(before):
            files[saved[1]] = code
        elif language in ("sh", "py"):
            paragraph = before.strip().rpartition("\n\n")[2]
            blocks.append(Block(code, language, beside=BESIDE in paragraph))
        elif language == "text":
            blocks[-1].prints.append(code)
    return Tutorial(blocks, files)


def script(tutorial: Tutorial) -> str:
    """A shell script that stops at the first block that fails."""
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for number, block in enumerate(tutorial.blocks):
        lines.append(f"echo '{MARK}{number}'")
        if block.beside:
            lines.append(f"( {block.code.strip()} ) >beside.log 2>&1 &")
            lines += _until_it_listens(tutorial, block)
        elif block.language == "py":
            lines.append(f"python3 - <<'PYTHON'\n{block.code}PYTHON")
        else:
            lines.append(_expecting(block.code))
    return "\n".join(lines)


def _until_it_listens(tutorial: Tutorial, block: Block) -> list[str]:
    program = block.code.split()[-1]
    [port] = re.findall(r"port=(\d+)", tutorial.files[program])
    retry = "curl --silent --output /dev/null --retry 60 --retry-delay 1 --retry-connrefused"
    return [f"{retry} http://127.0.0.1:{port}/"]


def _expecting(code: str) -> str:
    for words, exit_code in EXPECTED_EXITS.items():
        code = re.sub(
            rf"^(.*{re.escape(words)}.*)$", rf"\1 || test $? -eq {exit_code}", code, flags=re.M
        )
    return code


def run(tutorial: Tutorial, folder: Path, environment: dict[str, str]) -> list[str]:
    """What each block printed."""
    for name, content in tutorial.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    done = subprocess.run(
        ("bash", "-c", script(tutorial)),
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout
    return re.split(rf"^{MARK}\d+\n", done.stdout, flags=re.MULTILINE)[1:]


def is_printed(expected: str, printed: str) -> bool:
    """Whether the lines are in the output, in this order and without others between them."""
    pattern = "".join(map(_line, _plain(expected.strip()).splitlines())).removesuffix(r"\n")
    return re.search(f"^{pattern}", _plain(printed), re.MULTILINE) is not None


def _line(line: str) -> str:
    if line == "…":
        return r"(?:.*\n)*?"
    return ".*?".join(re.escape(part) for part in line.split("…")) + r"\n"


def _plain(text: str) -> str:
    """Without the lines of tables and indentation, and with one space in the place of several."""
    lines = (re.sub(r"[│┃|\s]+", " ", line).strip() for line in text.splitlines())
    return "\n".join(lines)
