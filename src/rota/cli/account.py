"""`rota account …`: all data of the account."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rota.cli.exits import fail
from rota.cli.output import print_json, print_text
from rota.cli.session import Session, client_command

commands = typer.Typer(no_args_is_help=True, help="Export or erase all data of the account.")


@client_command(commands)
def export(
    session: Session,
    output: Annotated[Path, typer.Option(help="The file to write.", dir_okay=False)],
) -> None:
    """Write everything that the account owns as lines of JSON. Needs the session of an owner.

    Example: rota account export --output account.ndjson
    """
    import json

    part = output.with_name(f"{output.name}.part")
    try:
        lines, digest, last = _download(session, part)
        end = json.loads(last)["end"] if last.startswith(b'{"end":') else None
        if end is None or (end["lines"], end["sha256"]) != (lines, digest):
            fail("The export was cut off. Try again.")
        part.replace(output)
    except OSError as error:
        fail(f"Cannot write {part}: {error.strerror}.")
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    if session.as_json:
        print_json(end)
    else:
        print_text(f"{lines} lines are in {output}.")


def _download(session: Session, path: Path) -> tuple[int, str, bytes]:
    """Writes an export to a new file. Returns how many lines it has before its last one, their
    digest, and the last one."""
    import hashlib

    digest, lines, rest = hashlib.sha256(), 0, b""
    path.unlink(missing_ok=True)
    # Only this user can read it, from the first moment.
    with open(path, "xb", opener=partial(os.open, mode=0o600)) as file:
        for piece in session.client.data.export():
            file.write(piece)
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                if line.startswith(b'{"end":'):
                    rest = line
                    break
                digest.update(line + b"\n")
                lines += 1
    return lines, digest.hexdigest(), rest


@client_command(commands)
def erase(
    session: Session,
    name: Annotated[str, typer.Option(help="The name of the account, to confirm it.")],
) -> None:
    """Erase the account for good. Needs a session of an owner that is younger than 10 minutes.

    Example: rota account erase --name "Ada Lovelace"
    """
    erasure = session.client.data.erase(name=name)
    if session.as_json:
        print_json({"erasure": erasure})
    else:
        print_text(f"{erasure.account_id} is closed. Its data is being erased.")
