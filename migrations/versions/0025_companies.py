"""Members who can approve, invitations, and addresses that issuers have verified."""

from alembic import context

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
