"""Options of tasks: the schema of the output, a budget and a deadline."""

from alembic import context

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
