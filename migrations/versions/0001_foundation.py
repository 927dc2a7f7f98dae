"""Users, accounts, sessions, API keys, and the row security that keeps tenants apart."""

from alembic import context

revision = "0001"
down_revision = None


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
