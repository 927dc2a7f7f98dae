"""Tasks store where their runs start, so that a retry from failure finds the steps to keep."""

from alembic import context

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
