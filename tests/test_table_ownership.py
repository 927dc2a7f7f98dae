"""Each table belongs to one package. Other packages use that package's functions, not its tables.

Import rules cannot see a query that reads another package's table, so this test reads the SQL.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rota"

TABLES: dict[str, set[str]] = {
    "platform": {"idempotency_keys", "installation"},
    "accounts": {"accounts", "erased_identities", "identities", "members", "users"},
    "auth": {"api_key_hashes", "api_keys", "sessions", "signing_keys", "used_id_tokens"},
    "audit": {"audit_checkpoints", "audit_entries", "audit_heads"},
    "payments": {"customers"},
    "companies": {"invitations"},
    "events": {"account_heads", "events", "notices", "outbox"},
    "credits": {"balances", "entries", "holds", "usage_days"},
    "mcp": {"mcp_checks", "mcp_servers", "mcp_tools"},
    "plans": {"subscriptions"},
    "agents": {"agent_terms", "agent_versions", "agents", "current_agents"},
    "tasks": {
        "places",
        "review_snoozes",
        "reviews",
        "task_counts",
        "task_shapers",
        "task_words",
        "tasks",
    },
    "rules": {"rules"},
    "data": {"erasures", "retention_turns", "sweeps"},
    "runs": {"steps"},
    "schedules": {"schedule_tasks", "schedules"},
    "webhooks": {"webhook_deliveries", "webhooks"},
    "notifications": {"notification_items", "notification_queues", "notification_settings"},
}
OWNER = {table: package for package, tables in TABLES.items() for table in tables}


@dataclass(frozen=True, slots=True)
class Exemption:
    """A file that may use tables of other packages, and why."""

    file: str
    tables: frozenset[str]
    reason: str


def exempt(file: str, tables: str, reason: str) -> Exemption:
    return Exemption(file, frozenset(tables.split()), reason)


EXEMPTIONS = (
    exempt(
        "tasks/queries.py",
        "account_heads events outbox",
        "One statement writes a task with its event, totals and instruction. The totals by status "
        "are in account_heads, whose row every change of the account locks anyway.",
    ),
    exempt(
        "tasks/retention.py",
        "account_heads",
        "The totals by status are in account_heads, and change with the tasks that are deleted.",
    ),
    exempt(
        "tasks/list_queries.py",
        "account_heads",
        "The totals by status are in account_heads.",
    ),
    exempt(
        "auth/queries.py",
        "accounts members users",
        "One statement authenticates a request. It joins the key or session to the account.",
    ),
    *(
        exempt(
            file,
            "accounts",
            "One statement compares the balance's tier and seats with the account's, so that no "
            "change of plan falls between two reads.",
        )
        for file in ("credits/allowance.py", "credits/holds.py", "credits/queries.py")
    ),
    exempt(
        "credits/verify.py",
        "erasures steps tasks",
        "The verification compares the ledger with the tasks and steps that it pays for, and an "
        "erasure cancels tasks before it releases their holds.",
    ),
    exempt(
        "dev/seed/rows.py",
        "account_heads accounts agents events members reviews task_counts task_words tasks users",
        "The seed writes millions of rows of every kind inside the server.",
    ),
    exempt(
        "dev/demo/history.py",
        "events outbox steps tasks",
        "The history gives rows a time in the past, and no worker runs its tasks.",
    ),
    exempt(
        "webhooks/progress.py",
        "account_heads",
        "One statement takes the webhooks whose position is behind the account's newest event.",
    ),
    exempt("dev/seed/bulk_load.py", "tasks", "The seed turns off the triggers of tasks."),
    exempt("dev/seed/__init__.py", "tasks", "The seed refuses a database that has tasks."),
    exempt(
        "restore/queries.py",
        "account_heads accounts api_keys audit_entries audit_heads entries mcp_servers members "
        "notification_settings outbox rules schedules sessions steps tasks used_id_tokens "
        "webhooks",
        "A restore compares what could act in the old and the restored database, whichever package "
        "owns it.",
    ),
    exempt(
        "secret_rotation.py",
        "idempotency_keys mcp_servers notification_settings signing_keys webhooks",
        "The rotation encrypts every sealed column again, whichever package owns it.",
    ),
)


@dataclass(frozen=True, slots=True)
class Use:
    file: str
    line: int
    table: str
    statement: str

    @property
    def package(self) -> str:
        return self.file.split("/")[0].removesuffix(".py")

    def __str__(self) -> str:
        return (
            f"src/rota/{self.file}:{self.line}: {self.package} uses {self.table}, "
            f"which belongs to {OWNER[self.table]}: {self.statement}"
        )


_NAMES = "|".join(sorted(OWNER))
# SQL keywords are upper case here, so prose does not match. The last form is a table with an
# alias of one letter in a list: FROM (...) h, balances b.
_USE = re.compile(
    rf"""\b(?:FROM|JOIN|INTO|UPDATE|TABLE)[\s"']+(?:ONLY\s+)?({_NAMES})\b"""
    rf"""|,\s*({_NAMES})\s+(?:AS\s+)?[a-z]\b"""
)
_CTE = re.compile(r"(?:\bWITH(?:\s+RECURSIVE)?|,)\s+([a-z_]+)\s+(?:\([^)]*\)\s+)?AS\s+\(")


def uses(path: Path) -> Iterator[Use]:
    source = path.read_text()
    for node, text in _strings(source):
        hidden = set(_CTE.findall(text))
        statement = " ".join(text.strip("\"'frb \n").split())[:100]
        for match in _USE.finditer(text):
            table = match[1] or match[2]
            if table not in hidden:
                line = node.lineno + text[: match.start()].count("\n")
                yield Use(path.relative_to(SOURCE).as_posix(), line, table, statement)


def _strings(source: str) -> Iterator[tuple[ast.expr, str]]:
    """Every string literal with its source text. An f-string is one literal."""
    lines = [line.encode() for line in source.splitlines()]
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if isinstance(node, ast.JoinedStr) or is_text:
            assert isinstance(node, ast.expr)
            yield node, _segment(lines, node)
        else:
            pending += ast.iter_child_nodes(node)


def _segment(lines: list[bytes], node: ast.expr) -> str:
    # ast.get_source_segment splits the whole file for every literal.
    assert node.end_lineno is not None
    text = lines[node.lineno - 1 : node.end_lineno]
    text[-1] = text[-1][: node.end_col_offset]
    text[0] = text[0][node.col_offset :]
    return b"\n".join(text).decode()


def foreign_uses() -> list[Use]:
    found = [use for path in sorted(SOURCE.rglob("*.py")) for use in uses(path)]
    return [use for use in found if OWNER[use.table] != use.package]


def test_every_table_of_the_migrations_has_an_owner() -> None:
    created = {
        name
        for path in (ROOT / "migrations" / "versions").glob("*.sql")
        for name in re.findall(r"^CREATE (?:TABLE|VIEW) ([a-z_]+)", path.read_text(), re.MULTILINE)
    }
    assert created == set(OWNER)


def test_no_package_uses_a_table_of_another_package() -> None:
    allowed = {(e.file, table) for e in EXEMPTIONS for table in e.tables}
    wrong = [use for use in foreign_uses() if (use.file, use.table) not in allowed]
    assert not wrong, "\n".join(
        ["Call a function of the package that owns the table instead:", *map(str, wrong)]
    )


def test_every_exemption_is_needed() -> None:
    used = {(use.file, use.table) for use in foreign_uses()}
    unused = [
        f"{exemption.file}: {table}"
        for exemption in EXEMPTIONS
        for table in sorted(exemption.tables)
        if (exemption.file, table) not in used
    ]
    assert not unused, "Remove these from EXEMPTIONS: " + ", ".join(unused)


def test_uses_are_found_in_plain_strings_f_strings_and_lists(tmp_path: Path) -> None:
    statements = (
        '"SELECT id FROM tasks"',
        'f"UPDATE tasks SET {x}"',
        '"""\nSELECT 1 FROM a JOIN tasks t ON true"""',
        '"INSERT INTO "\n"tasks (id)"',
        '"SELECT 1 FROM (VALUES (1)) v, tasks t"',
        '"DELETE FROM tasks WHERE id = $1"',
    )
    for statement in statements:
        found = [text for _, text in _strings(f"run({statement})") if _USE.search(text)]
        assert found == [statement]
    prose = '"A list of tasks from tasks"'
    assert not any(_USE.search(text) for _, text in _strings(f"run({prose})"))
