"""Policies of an account, who shaped a task, and standing rules."""

from alembic import context

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
