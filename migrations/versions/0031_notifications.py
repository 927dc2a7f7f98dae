"""Notifications: what people want to be told, what has happened, and what has to be sent."""

from alembic import context

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
