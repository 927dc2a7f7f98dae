"""The catalog of agents with all their versions, and its search."""

from alembic import context

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
