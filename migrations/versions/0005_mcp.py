"""Tool servers, and the offered and accepted definitions of their tools."""

from alembic import context

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
