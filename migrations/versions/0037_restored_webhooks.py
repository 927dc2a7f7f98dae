"""A reason for webhooks that a restore has disabled."""

from alembic import context

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
