"""What an agent is for, and a search in which any word can match."""

from alembic import context

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
