"""Applies the database migrations, from a checkout or an installed package."""

from pathlib import Path

from alembic import command
from alembic.config import Config

import rota


def migrations_folder() -> Path:
    package = Path(rota.__file__).parent
    # A wheel has the folder inside the package, a checkout next to `src`.
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parents[1] / "migrations"


def migrate(database_url: str) -> None:
    """Updates the database schema. It blocks, so call it from a thread or a command."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.attributes["url"] = database_url
    command.upgrade(config, "head")
