"""The steps of every run: each model call and tool call with its cost."""

from alembic import context

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
