"""The ledger: balances, entries and the holds of runs."""

from alembic import context

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
