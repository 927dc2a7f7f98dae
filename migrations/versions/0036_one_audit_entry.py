"""A procedure that appends one audit entry, which is what most transactions do."""

from alembic import context

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
