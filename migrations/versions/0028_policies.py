"""Policies of an account, and who shaped a task."""

from alembic import context

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
