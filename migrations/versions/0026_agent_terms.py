"""The function that splits an agent into terms, without a row type."""

from alembic import context

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
