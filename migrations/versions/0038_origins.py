"""An index of the tasks that were forked from a task."""

from pathlib import Path

from alembic import context

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    attributes = context.config.attributes
    # Before the transaction of the migration locks anything: a concurrent index would wait for it.
    attributes["run_concurrently"](str(Path(__file__).with_name("0038_origins_indexes.sql")))
    attributes["run_sql"](__file__)
