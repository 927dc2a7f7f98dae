"""Retention, export and erasure."""

from pathlib import Path

from alembic import context

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    attributes = context.config.attributes
    # Before the transaction of the migration locks anything: a concurrent index would wait for it.
    attributes["run_concurrently"](str(Path(__file__).with_name("0029_data_indexes.sql")))
    attributes["run_sql"](__file__)
