"""Rules for migrations that squawk lacks. docs/upgrading.md explains them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.migrations.files import VERSIONS, SqlFile, sql_files


@dataclass(frozen=True)
class Finding:
    file: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.message}"


# (rule, position in the text, message)
Found = Iterator[tuple[str, int, str]]
_NAME = r"(?:IF (?:NOT )?EXISTS )?(?:ONLY )?\"?(\w+)\"?"
_CREATED = re.compile(rf"\bCREATE TABLE {_NAME}", re.IGNORECASE)
_ALTERED = re.compile(rf"\bALTER TABLE {_NAME}", re.IGNORECASE)
_CREATE_INDEX = re.compile(
    r"\bCREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?\"?(\w+)", re.IGNORECASE
)
_SESSION = re.compile(
    r"\bpg_(?:try_)?advisory_lock\w*\s*\(|(?:^|(?<=;))\s*(?:(?:UN)?LISTEN\b"
    r"|(?:BEGIN|COMMIT|ROLLBACK)\s*(?:;|$)|SET (?!LOCAL\b|TRANSACTION\b|CONSTRAINTS\b)\w+)",
    re.IGNORECASE,
)
_LOCK_TIMEOUT = re.compile(r"\block_timeout\b", re.IGNORECASE)
_MOVES = re.compile(
    r"\b(?:INSERT INTO (?:\w+)\s*(?:\([^)]*\))?\s*SELECT\b[^;]*?\bFROM (\w+)"
    r"|(?<!FOR )(?<!ON )(?<!DO )UPDATE (\w+)(?:\s+AS)?(?:\s+\w+)?\s+SET\b|DELETE FROM (\w+))",
    re.IGNORECASE,
)
# What the release before may still use. squawk knows columns, tables, types and functions.
_REMOVES = re.compile(
    r"\b(?:DROP (?:POLICY|VIEW|TRIGGER|TYPE|ROLE|SEQUENCE|FUNCTION|PROCEDURE)|REVOKE\b(?! ALL ON "
    r"FUNCTION)|ALTER (?:FUNCTION|TYPE|POLICY|VIEW) \w+ RENAME|DISABLE TRIGGER)",
    re.IGNORECASE,
)
_CONTRACT = re.compile(r"--\s*contract:\s*\S+", re.IGNORECASE)


def _concurrent_in_transaction(file: SqlFile) -> Found:
    if file.concurrent:
        return
    for found in re.finditer(r"\bCONCURRENTLY\b", file.code, re.IGNORECASE):
        message = "CONCURRENTLY cannot run in a transaction: use run_concurrently in the .py file"
        yield "concurrent-in-transaction", found.start(), message


def _only_indexes(file: SqlFile) -> Found:
    """Statements outside a transaction have no lock_timeout, so only those that block nobody."""
    if not file.concurrent:
        return
    for found in re.finditer(r"[^;\s][^;]*", file.code):
        if not re.match(r"(?:CREATE|DROP)\b[^;]*\bCONCURRENTLY\b", found.group(), re.IGNORECASE):
            message = "only concurrent statements run outside a transaction: use run_sql"
            yield "not-concurrent", found.start(), message


def _repeatable(file: SqlFile) -> Found:
    """After a failure, an invalid index is left. IF NOT EXISTS would keep it."""
    for found in _CREATE_INDEX.finditer(file.code):
        dropped = rf"\bDROP INDEX CONCURRENTLY IF EXISTS \"?{found.group(1)}\b"
        if not re.search(dropped, file.code[: found.start()], re.IGNORECASE):
            message = f"add before it: DROP INDEX CONCURRENTLY IF EXISTS {found.group(1)};"
            yield "not-repeatable", found.start(), message


def _session_state(file: SqlFile) -> Found:
    for found in _SESSION.finditer(file.top):
        message = (
            f"a pooler in transaction mode does not keep it: {' '.join(found.group().split())}"
        )
        yield "session-state", found.start(), message
    for found in _LOCK_TIMEOUT.finditer(file.top):
        yield "own-lock-timeout", found.start(), "migrations/env.py sets lock_timeout"


def _moves_data_under_lock(file: SqlFile) -> Found:
    """A table that is altered stays locked until the transaction ends."""
    created = {name.lower() for name in _CREATED.findall(file.top)}
    altered = {name.lower() for name in _ALTERED.findall(file.top)} - created
    for found in _MOVES.finditer(file.top):
        table = next(name for name in found.groups() if name).lower()
        # What PostgreSQL says about itself is small.
        if altered and table not in created and not table.startswith("pg_"):
            locked = ", ".join(sorted(altered))
            message = (
                f"it reads or changes rows of {table} while {locked} is locked: "
                "use a migration of its own, or let the worker do it"
            )
            yield "data-under-lock", found.start(), message


def _removes_without_reason(file: SqlFile) -> Found:
    for found in _REMOVES.finditer(file.top):
        before = file.text[: found.start()].rstrip().rpartition("\n\n")[2]
        if not _CONTRACT.search(before):
            removed = " ".join(found.group().split())
            message = (
                f"{removed}: the release before may still use it. If not, say "
                "since when, in a comment above: -- contract: nothing uses it since …"
            )
            yield "contract", found.start(), message


RULES: tuple[Callable[[SqlFile], Found], ...] = (
    _concurrent_in_transaction,
    _only_indexes,
    _repeatable,
    _session_state,
    _moves_data_under_lock,
    _removes_without_reason,
)


def check_file(file: SqlFile) -> list[Finding]:
    return [
        Finding(file.name, file.line_of(position), rule, message)
        for check in RULES
        for rule, position, message in check(file)
    ]


def check_scripts(folder: Path) -> list[Finding]:
    """Every SQL file runs through migrations/env.py, which sets lock_timeout."""
    run = {file.name for file in sql_files(folder)}
    found = [
        Finding(path.name, 1, "not-run", "no migration runs this file with run_sql")
        for path in sorted(folder.glob("*.sql"))
        if path.name not in run
    ]
    for script in sorted(folder.glob("[0-9]*_*.py")):
        text = script.read_text()
        if match := re.search(r"\bop\.|exec_driver_sql|\.execute\(", text):
            message = "statements belong into the .sql file: here they have no lock_timeout"
            line = text.count("\n", 0, match.start()) + 1
            found.append(Finding(script.name, line, "statement-in-script", message))
    return found


def check(folder: Path = VERSIONS) -> list[Finding]:
    found = [finding for file in sql_files(folder) for finding in check_file(file)]
    return found + check_scripts(folder)
