"""Summaries of long runs, as steps of their own kind."""

from alembic import context

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
