"""Finds the runs of an account that wait for a slot of a worker."""

from alembic import context

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    context.config.attributes["run_concurrently"](__file__)
