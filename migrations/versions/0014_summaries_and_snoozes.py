"""Sentences about tool calls, initials of agents, budgets of tasks, and reviews put off."""

from alembic import context

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
