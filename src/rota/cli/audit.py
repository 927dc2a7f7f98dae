"""`rota admin audit …` and `rota receipt …`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rota.cli.runtime import (
    Json,
    act_as_operator,
    fail,
    operator_settings,
    parse_id,
    with_composition,
)

if TYPE_CHECKING:
    from rota.platform.settings import Settings

audit = typer.Typer(
    no_args_is_help=True, help="Verify and export the audit trail.", callback=act_as_operator
)
receipt = typer.Typer(no_args_is_help=True, help="Check the receipts of tasks.")

Account = Annotated[str, typer.Option(help="The account (acct_…).")]
Keys = Annotated[
    Path | None,
    typer.Option(
        help="A copy of /.well-known/audit-keys.json. Default: the keys in the settings.",
        exists=True,
        dir_okay=False,
    ),
]


def _keys(path: Path | None) -> list[dict[str, Any]]:
    from rota.platform.signatures import Signer
    from rota.receipts.commands import read_keys

    if path is not None:
        return read_keys(path)
    settings = _settings()
    return list(Signer(settings.audit_key_bytes, settings.audit_keys_old).public_keys())


def _published_keys() -> list[dict[str, Any]]:
    """The keys of the settings, to check where a trail begins after retention has cut it."""
    from rota.platform.signatures import Signer

    settings = operator_settings()
    return list(Signer(settings.audit_key_bytes, settings.audit_keys_old).public_keys())


def _settings() -> "Settings":
    """For commands that sign with ROTA_AUDIT_KEY, or trust it."""
    settings = operator_settings()
    if settings.env == "production" and settings.has_public_audit_key:
        fail("Set ROTA_AUDIT_KEY to the key of the service. The default is public.")
    return settings


@audit.command()
def verify(
    account: Annotated[str | None, typer.Option(help="Check only this account (acct_…).")] = None,
    head: Annotated[
        list[Path] | None,
        typer.Option(
            help="A head that was kept. The trail must still lead to it.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Check this export instead of the database.", exists=True, dir_okay=False
        ),
    ] = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Check that no audit entry was changed, removed, inserted or moved.

    The command only reads. It exits with 1 if it finds a problem.

    Example: rota admin audit verify --head kept.jws
    """
    from rota.audit.commands import verify_command, verify_file_command

    if file is not None:
        if account is not None:
            raise typer.BadParameter("--file cannot be used with --account.")
        verify_file_command(file, _keys(keys), head or [], as_json=as_json)
        return
    account_id = parse_id("acct", account) if account is not None else None
    known = _keys(keys) if head or keys else _published_keys()
    with_composition(
        operator_settings(),
        lambda parts: verify_command(parts.db, account_id, head or [], known, as_json=as_json),
    )


@audit.command()
def export(
    account: Account,
    output: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> None:
    """Write the trail of an account as lines of JSON, with its signed head at the end.

    Example: rota admin audit export --account acct_… --output trail.ndjson
    """
    from rota.audit.commands import export_command

    account_id = parse_id("acct", account)
    with_composition(
        _settings(),
        lambda parts: export_command(parts.db, parts.audit_trail, account_id, output),
    )


@audit.command()
def head(account: Account) -> None:
    """Print the signed head of an account's trail, for an auditor to keep.

    Example: rota admin audit head --account acct_… >kept.jws
    """
    from rota.audit.commands import head_command

    account_id = parse_id("acct", account)
    with_composition(
        _settings(), lambda parts: head_command(parts.db, parts.audit_trail, account_id)
    )


@receipt.command("verify")
def verify_receipt(
    file: Annotated[
        Path,
        typer.Argument(
            help="The response of GET /api/tasks/{id}/receipt, or its `jws`.",
            exists=True,
            dir_okay=False,
        ),
    ],
    keys: Annotated[
        Path,
        typer.Option(help="A copy of /.well-known/audit-keys.json.", exists=True, dir_okay=False),
    ],
    as_json: Json = False,
) -> None:
    """Check the receipt of a task. No service or database is needed.

    Example: rota receipt verify receipt.json --keys audit-keys.json
    """
    from rota.receipts.commands import read_keys, verify_command

    verify_command(file, read_keys(keys), as_json=as_json)
