"""Applies the migrations, from a checkout or from an installed package."""

from pathlib import Path

from alembic import command
from alembic.config import Config

import rota


def migrations_folder() -> Path:
    package = Path(rota.__file__).parent
    # A wheel carries the folder inside the package, a checkout beside it.
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parents[1] / "migrations"


def migrate(database_url: str) -> None:
    """Brings the database up to date. Blocking: call it from a thread or a command."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.attributes["url"] = database_url
    command.upgrade(config, "head")
