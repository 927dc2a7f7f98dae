"""The ledger: balances, the entries that prove them, and what runs have on hold."""

from alembic import context

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
