"""Tasks, reviews, the event journal, the outbox, and responses for idempotency keys."""

from alembic import context

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
