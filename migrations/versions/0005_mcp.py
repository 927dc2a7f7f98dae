"""Tool servers, the tools that they offer, and what a person has accepted of them."""

from alembic import context

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
