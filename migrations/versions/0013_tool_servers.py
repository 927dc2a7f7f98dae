"""Who accepted the definition of a tool."""

from alembic import context

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
