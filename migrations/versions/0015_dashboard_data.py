"""Balances after entries, alerts about low balances, checks of tool servers, makers of keys."""

from alembic import context

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
