"""Several old secrets of a webhook, which sign until their own time."""

from alembic import context

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
