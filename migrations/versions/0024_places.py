"""How many of an agent's tasks can run at the same time in one account."""

from alembic import context

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
