"""Forks: tasks that continue from a step of another task."""

from alembic import context

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
