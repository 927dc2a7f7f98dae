"""How many tasks of one agent an account works on at the same time."""

from alembic import context

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
