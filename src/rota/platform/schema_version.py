"""Which version the database schema has, and which one this release needs. Also its encoding."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg

import rota
from rota.platform.start_checks import StartRefused


def migrations_folder() -> Path:
    package = Path(rota.__file__).parent
    # A wheel has the folder inside the package, a checkout next to `src`.
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parents[1] / "migrations"


@cache
def needed() -> str:
    """The number of the newest migration of this release."""
    files = (migrations_folder() / "versions").glob("[0-9]*_*.py")
    return max(file.name.partition("_")[0] for file in files)


async def check_version(begin: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
    """Refuses a schema that is older than this release. A newer one is fine: during an upgrade,
    older processes run until they are replaced."""
    try:
        async with begin() as connection:
            await check_encoding(connection)
            found = await connection.fetchval("SELECT version_num FROM alembic_version")
    except (asyncpg.UndefinedTableError, asyncpg.InsufficientPrivilegeError):
        # A migration that this release makes also gives the right to read the version.
        found = None
    if found is None:
        raise StartRefused("The database schema is missing or older. Run: rota admin migrate")
    if found < needed():
        raise StartRefused(
            f"The database schema has version {found}, and this release needs {needed()}. "
            "Run: rota admin migrate"
        )


async def check_encoding(connection: Any) -> None:
    """Refuses a database that cannot store every text. PostgreSQL creates one, for example, on a
    system without a locale."""
    encoding = await connection.fetchval("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StartRefused(
            f"The database has the encoding {encoding}, which cannot be changed. Create another "
            "one: CREATE DATABASE rota OWNER rota_owner ENCODING 'UTF8' TEMPLATE template0"
        )
