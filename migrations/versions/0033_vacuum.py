"""Vacuum large tables after a small share of their rows has changed."""

from alembic import context

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
