"""Users, accounts, sessions, API keys, and row security between accounts."""

from alembic import context

revision = "0001"
down_revision = None


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
