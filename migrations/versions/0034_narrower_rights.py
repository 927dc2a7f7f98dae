"""Webhooks end with the API key that chose their URL, and identities go only with their user."""

from alembic import context

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
