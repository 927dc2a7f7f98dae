"""What a process needs to notice that the database was restored."""

from alembic import context

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
