"""The relay's right to read all accounts is a role instead of a setting."""

from alembic import context

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
