"""Decisions are bound to what was shown: sealed reviews and calls, and who decided with what."""

from alembic import context

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
