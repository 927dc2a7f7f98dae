"""Leases, lanes, turns and dead letters of the outbox, and one check per run."""

from alembic import context

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
