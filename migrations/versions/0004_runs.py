"""Steps: the transcript of every run, each model call and tool call with its price."""

from alembic import context

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
