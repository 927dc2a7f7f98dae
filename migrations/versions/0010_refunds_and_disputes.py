"""Entries for disputes, and for money that comes back from refunds and disputes."""

from alembic import context

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
