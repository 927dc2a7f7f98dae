"""The audit trail: a chain of entries for each account."""

from alembic import context

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
