"""Migrations: each in its own transaction, short waits for locks, and concurrent indexes."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from rota.dev.stack import Stack
from rota.platform.migrate import migrate
from rota.platform.schema_version import migrations_folder
from tests.service import create_database

SCRIPT = """
from alembic import context

revision = "{number}"
down_revision = {before}


def upgrade() -> None:
    context.config.attributes["{how}"](__file__)
"""


class Folder:
    """Migrations of a test."""

    def __init__(self, path: Path, url: str) -> None:
        self._path, self.url = path, url
        self.versions = path / "versions"
        self.versions.mkdir(parents=True)
        for name in ("env.py", "script.py.mako"):
            shutil.copy(migrations_folder() / name, path)

    def add(self, number: int, sql: str, how: str = "run_sql") -> None:
        before = repr(str(number - 1)) if number > 1 else None
        file = self.versions / f"{number}_test.py"
        file.write_text(SCRIPT.format(number=number, before=before, how=how))
        file.with_suffix(".sql").write_text(sql)

    async def apply(self, attempts: int = 1) -> None:
        await asyncio.to_thread(
            migrate,
            self.url,
            folder=self._path,
            lock_timeout_s=0.2,
            attempts=attempts,
            pause_s=0.05,
        )

    async def apply_in_process(self) -> None:
        code = "import sys, pathlib; from rota.platform.migrate import migrate\n"
        code += "migrate(sys.argv[1], folder=pathlib.Path(sys.argv[2]))"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, self.url, str(self._path)
        )
        assert await process.wait() == 0


@pytest.fixture
async def folder(stack: Stack, tmp_path: Path) -> Folder:
    await create_database(stack.endpoints.database_url, "migrations")
    url = stack.endpoints.database_url.rpartition("/")[0] + "/migrations"
    return Folder(tmp_path / "migrations", url)


@pytest.fixture
async def connection(folder: Folder) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(folder.url)
    yield opened
    await opened.close()


async def version(connection: asyncpg.Connection) -> str:
    found: str = await connection.fetchval("SELECT version_num FROM alembic_version")
    return found


async def test_a_failed_migration_keeps_those_before_it(
    folder: Folder, connection: asyncpg.Connection
) -> None:
    folder.add(1, "CREATE TABLE first (n int);")
    folder.add(2, "CREATE TABLE second (n int); SELECT 1/0;")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await folder.apply()
    assert await version(connection) == "1"
    assert await connection.fetchval("SELECT to_regclass('second')") is None


async def test_a_migration_waits_briefly_for_a_lock_and_tries_again(
    folder: Folder, connection: asyncpg.Connection
) -> None:
    folder.add(1, "CREATE TABLE busy (n int);")
    await folder.apply()
    folder.add(2, "ALTER TABLE busy ADD COLUMN m int;")
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("INSERT INTO busy VALUES (1)")
    with pytest.raises(asyncpg.LockNotAvailableError):
        await folder.apply()
    applying = asyncio.create_task(folder.apply(attempts=100))
    await asyncio.wait([applying], timeout=0.5)
    assert not applying.done()
    # Another transaction is not stuck behind the migration.
    other = await asyncpg.connect(folder.url)
    async with asyncio.timeout(20):
        await other.execute("INSERT INTO busy VALUES (2)")
    await other.close()
    await transaction.commit()
    await applying
    assert await version(connection) == "2"


async def test_an_older_release_leaves_a_newer_schema_alone(
    folder: Folder, connection: asyncpg.Connection
) -> None:
    folder.add(1, "CREATE TABLE first (n int);")
    folder.add(2, "CREATE TABLE second (n int);")
    await folder.apply()
    for file in folder.versions.glob("2_*"):
        file.unlink()
    await folder.apply()
    assert await version(connection) == "2"


async def test_an_index_can_be_built_concurrently(
    folder: Folder, connection: asyncpg.Connection
) -> None:
    folder.add(1, "CREATE TABLE large (n int, m int);")
    folder.add(
        2,
        "-- Can be repeated after a failure.\n"
        "DROP INDEX CONCURRENTLY IF EXISTS large_by_n;\n"
        "CREATE INDEX CONCURRENTLY large_by_n ON large (n);\n",
        how="run_concurrently",
    )
    folder.add(3, "ALTER TABLE large ADD COLUMN last int;")
    await folder.apply()
    assert await version(connection) == "3"
    query = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'large_by_n'::regclass"
    assert await connection.fetchval(query)


async def test_deployments_at_the_same_time_run_one_after_the_other(
    folder: Folder, connection: asyncpg.Connection
) -> None:
    folder.add(1, "CREATE TABLE once (n int); SELECT pg_sleep(0.3);")
    folder.add(2, "INSERT INTO once VALUES (1);")
    await asyncio.gather(folder.apply_in_process(), folder.apply_in_process())
    assert await connection.fetchval("SELECT count(*) FROM once") == 1


@pytest.mark.parametrize("suffix", ["?sslmode=prefer", "?sslmode=disable&application_name=x"])
async def test_every_url_of_the_driver_works(folder: Folder, suffix: str) -> None:
    folder.add(1, "CREATE TABLE first (n int);")
    # postgres://, and two hosts of which the first does not respond.
    folder.url = folder.url.replace("postgresql://", "postgres://", 1)
    folder.url = folder.url.replace("@127.0.0.1:", "@127.0.0.1:1,127.0.0.1:", 1) + suffix
    await folder.apply()
    connection = await asyncpg.connect(folder.url)
    assert await version(connection) == "1"
    await connection.close()


async def test_every_migration_follows_the_one_before_it_in_a_separate_run(
    folder: Folder, connection: asyncpg.Connection
) -> None:
    """As deployments do. All at once, an upgrade that waits for itself would not show."""
    for script in sorted((migrations_folder() / "versions").glob("*.py")):
        for file in script.parent.glob(f"{script.name[:4]}*"):
            shutil.copy(file, folder.versions)
        async with asyncio.timeout(30):
            await folder.apply()
        assert await version(connection) == script.name[:4]
