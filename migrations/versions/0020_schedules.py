"""Schedules, and the tasks that they created."""

from alembic import context

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
