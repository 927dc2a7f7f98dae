"""Subscriptions: an account's plan, and the personal add-on."""

from alembic import context

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
