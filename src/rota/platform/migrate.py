"""Applies the database migrations, from a checkout or an installed package."""

import time
from pathlib import Path

import asyncpg
import structlog
from alembic import command
from alembic.config import Config

from rota.platform.schema_version import migrations_folder

log = structlog.get_logger()

# A migration that cannot get a lock in this time lets the others pass and tries again.
LOCK_TIMEOUT_S = 3.0
ATTEMPTS = 20
PAUSE_S = 5.0


def migrate(
    database_url: str,
    *,
    folder: Path | None = None,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    attempts: int = ATTEMPTS,
    pause_s: float = PAUSE_S,
) -> None:
    """Updates the database schema. It blocks, so call it from a thread or a command."""
    config = Config()
    config.set_main_option("script_location", str(folder or migrations_folder()))
    config.attributes |= {"url": database_url, "lock_timeout_s": lock_timeout_s}
    for attempt in range(1, attempts + 1):
        try:
            # Migrations that were applied before the failure stay applied.
            command.upgrade(config, "head")
            return
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            if attempt == attempts:
                raise
            log.warning("migration_waits_for_lock", attempt=attempt, error=str(error))
            time.sleep(pause_s)
