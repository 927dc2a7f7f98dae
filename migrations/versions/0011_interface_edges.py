"""Where a session is used, idempotency keys of one user, and the words of tasks."""

from alembic import context

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
