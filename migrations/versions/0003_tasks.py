"""Tasks, their reviews, the event log, the outbox, and answers kept for replay."""

from alembic import context

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
