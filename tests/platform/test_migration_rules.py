"""Every migration can run while the service does. tools/migrations has the rules."""

import re
from pathlib import Path

import pytest

from rota.platform.schema_version import migrations_folder
from tools.migrations import accepted, rules, squawk
from tools.migrations.files import SqlFile, sql_files

MISSING = "squawk is not installed, so migrations were NOT checked with it. Run: make migrations"


def found(sql: str, *, concurrent: bool = False) -> set[str]:
    return {finding.rule for finding in rules.check_file(SqlFile("0099.sql", sql, concurrent))}


def test_every_migration_follows_our_rules() -> None:
    assert accepted.remaining(rules.check()) == []


@pytest.mark.skipif(squawk.program() is None, reason=MISSING)
def test_squawk_finds_nothing_in_a_migration() -> None:
    program = squawk.program()
    assert program is not None
    assert accepted.remaining(squawk.check(program)) == []


@pytest.mark.skipif(squawk.program() is None, reason=MISSING)
@pytest.mark.parametrize(
    ("sql", "how", "rule"),
    [
        ("ALTER TABLE tasks DROP COLUMN name;", "run_sql", "ban-drop-column"),
        ("ALTER TABLE tasks RENAME COLUMN name TO title;", "run_sql", "renaming-column"),
        ("ALTER TABLE tasks ADD COLUMN n int NOT NULL;", "run_sql", "adding-required-field"),
        ("CREATE INDEX i ON tasks (name);", "run_sql", "require-concurrent-index-creation"),
        ("ALTER TABLE tasks ALTER name TYPE int;", "run_sql", "changing-column-type"),
        (
            "ALTER TABLE tasks ADD CONSTRAINT c CHECK (n > 0);",
            "run_sql",
            "constraint-missing-not-valid",
        ),
        ("CREATE INDEX CONCURRENTLY i ON tasks (name);", "run_concurrently", None),
    ],
)
def test_squawk_finds_statements_that_lock_a_table_or_break_the_release_before(
    tmp_path: Path, sql: str, how: str, rule: str | None
) -> None:
    program = squawk.program()
    assert program is not None
    (tmp_path / "0099_test.py").write_text(f'context.config.attributes["{how}"](__file__)\n')
    (tmp_path / "0099_test.sql").write_text(sql)
    assert {finding.rule for finding in squawk.check(program, tmp_path)} == ({rule} - {None})


def test_every_accepted_finding_still_exists_and_has_a_reason() -> None:
    names = {file.name for file in sql_files()}
    assert {name for name, _ in accepted.ACCEPTED} <= names
    ours = {(finding.file, finding.rule) for finding in rules.check()}
    assert ("0029_data.sql", "data-under-lock") in ours
    assert all(len(reason) > 40 for reason in accepted.ACCEPTED.values())


def test_the_files_of_a_migration_are_found_with_how_they_run() -> None:
    how = {file.name: file.concurrent for file in sql_files()}
    assert how["0029_data_indexes.sql"]
    assert not how["0029_data.sql"]
    assert how["0019_queued_runs.sql"]
    assert len(how) == len(list((migrations_folder() / "versions").glob("*.sql")))


def test_the_environment_of_migrations_sets_a_lock_timeout_before_the_statements() -> None:
    text = (migrations_folder() / "env.py").read_text()
    function = re.search(r"def run_sql.*?(?=\ndef )", text, re.DOTALL)
    assert function is not None
    timeout = function.group().index("SET LOCAL lock_timeout = ")
    assert timeout < function.group().index("driver.execute(")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX CONCURRENTLY i ON tasks (name);",
        "DROP INDEX CONCURRENTLY IF EXISTS i;",
    ],
)
def test_a_concurrent_index_cannot_be_built_in_a_transaction(sql: str) -> None:
    assert "concurrent-in-transaction" in found(sql)
    assert "concurrent-in-transaction" not in found(sql, concurrent=True)


def test_only_concurrent_statements_run_outside_a_transaction() -> None:
    assert found("ALTER TABLE tasks ADD COLUMN n int;", concurrent=True) == {"not-concurrent"}


def test_a_concurrent_index_must_be_dropped_before_because_a_failure_leaves_an_invalid_one() -> (
    None
):
    drop, create = "DROP INDEX CONCURRENTLY IF EXISTS i;", "CREATE INDEX CONCURRENTLY i ON t (n);"
    assert found(f"{drop}\n{create}", concurrent=True) == set()
    assert found(create, concurrent=True) == {"not-repeatable"}
    assert found(f"DROP INDEX CONCURRENTLY IF EXISTS j;\n{create}", concurrent=True) == {
        "not-repeatable"
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SET search_path = public;",
        "SELECT 1; SET ROLE rota_app;",
        "SELECT pg_advisory_lock(1);",
        "LISTEN news;",
        "BEGIN; SELECT 1; COMMIT;",
    ],
)
def test_state_of_a_session_is_refused(sql: str) -> None:
    assert found(sql) == {"session-state"}


@pytest.mark.parametrize(
    "sql",
    [
        "SET LOCAL search_path = public;",
        "UPDATE tasks SET listen = 1;",
        "-- SET ROLE rota_app;\nSELECT 1;",
        "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; END $$;",
        "SELECT pg_advisory_xact_lock(1);",
    ],
)
def test_state_of_a_transaction_is_fine(sql: str) -> None:
    assert found(sql) == set()


def test_a_migration_does_not_change_the_lock_timeout() -> None:
    assert found("SET LOCAL lock_timeout = 0;") == {"own-lock-timeout"}


def test_rows_do_not_move_while_a_table_is_locked() -> None:
    lock = "ALTER TABLE tasks ADD COLUMN n int;"
    assert found(f"{lock}\nUPDATE tasks SET n = 1;") == {"data-under-lock"}
    assert found(f"{lock}\nDELETE FROM events;") == {"data-under-lock"}
    assert found(f"{lock}\nINSERT INTO other (a) SELECT id FROM accounts;") == {"data-under-lock"}
    assert found("UPDATE tasks SET n = 1;") == set()
    assert found(f"{lock}\nCREATE TABLE other (a int);\nDELETE FROM other;") == set()
    trigger = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n"
    assert found(f"{lock}\n{trigger} UPDATE tasks SET n = 1; RETURN NEW; END $$;") == set()


@pytest.mark.parametrize(
    "sql",
    [
        "DROP POLICY own ON tasks;",
        "REVOKE DELETE ON tasks FROM rota_app;",
        "DROP FUNCTION add_notice(text);",
        "DROP TRIGGER open_retention_turn ON accounts;",
    ],
)
def test_what_the_release_before_may_use_is_removed_with_a_reason_only(sql: str) -> None:
    assert found(f"SELECT 1;\n\n{sql}") == {"contract"}
    assert found(f"SELECT 1;\n\n-- contract: nothing uses it since 0.4.\n{sql}") == set()


def test_a_statement_outside_a_sql_file_has_no_lock_timeout_and_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0099_test.py").write_text("op.execute('DROP TABLE tasks')\n")
    (tmp_path / "0099_test.sql").write_text("SELECT 1;\n")
    assert {finding.rule for finding in rules.check_scripts(tmp_path)} == {
        "statement-in-script",
        "not-run",
    }
