"""The fence of a run, and the failed attempts of each call."""

from alembic import context

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
