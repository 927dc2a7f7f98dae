"""Charges: cached and reasoning tokens of each model call, and which charges are estimates."""

from alembic import context

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
