"""${message}"""

from alembic import context

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    context.config.attributes["run_sql"](__file__)
