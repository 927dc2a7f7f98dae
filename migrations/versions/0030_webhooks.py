"""Webhooks: endpoints of customers that receive the events of an account."""

from alembic import context

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
