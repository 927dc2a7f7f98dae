"""`rota receipt verify`: checks a receipt without the service."""

import sys
from pathlib import Path
from typing import Any

import typer

from rota.platform import json
from rota.platform.signatures import NotSigned
from rota.receipts import document


def read_keys(path: Path) -> list[dict[str, Any]]:
    """The keys in a copy of /.well-known/audit-keys.json."""
    try:
        keys = json.exact(path.read_bytes())["keys"]
        if all(isinstance(key["kid"], str) and isinstance(key["x"], str) for key in keys):
            return list(keys)
    except (ValueError, KeyError, TypeError):
        pass
    typer.secho(f"{path} is not a copy of /.well-known/audit-keys.json.", err=True)
    raise typer.Exit(2)


def verify_command(path: Path, keys: list[dict[str, Any]], *, as_json: bool = False) -> None:
    """Prints what the receipt says, or what is wrong with it, and then exits with 1."""
    text = path.read_text().strip()
    shown: object = None
    if text.startswith("{"):
        try:
            answer = json.exact(text)
            text, shown = answer["jws"], answer.get("receipt")
        except (ValueError, KeyError, TypeError):
            typer.secho(f"{path} is not a response of GET /api/tasks/{{id}}/receipt.", err=True)
            raise typer.Exit(2) from None
    try:
        found, problems = document.check(text, keys, shown)
    except NotSigned as error:
        typer.secho(f"The receipt is not valid. {error}", err=True)
        raise typer.Exit(1) from None
    except (KeyError, TypeError, ValueError, AssertionError):
        typer.secho("The receipt is signed, but its content is not complete.", err=True)
        raise typer.Exit(1) from None
    for problem in problems:
        typer.secho(problem, err=True)
    if problems:
        raise typer.Exit(1)
    if as_json:
        sys.stdout.buffer.write(json.dumps({"valid": True, "receipt": found}) + b"\n")
        return
    typer.echo(
        f"The receipt is valid: {found['task']} of {found['account']}, {found['status']} at "
        f"{found['at']}, signed for {found['issuer']}. {len(found['decisions'])} decisions, "
        f"{len(found['calls'])} calls, {len(found['ledger'])} ledger entries "
        f"({found['spentMicros']} micro-dollars spent), {len(found['audit'])} audit entries."
    )
