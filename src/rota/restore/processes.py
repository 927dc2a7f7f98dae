"""Whether processes of the service still use a database."""

from rota.platform.db import Database
from rota.platform.errors import Conflict
from rota.restore import queries


class StillRunning(Conflict):
    def __init__(self, connections: int) -> None:
        super().__init__(
            f"Other processes have {connections} connections to the database. Stop every rota "
            "serve and rota worker, then run the command again. If these are connections that a "
            "pooler keeps open, use --ignore-connections."
        )


async def check_stopped(db: Database) -> None:
    async with db.directory() as connection:
        connections = await queries.other_connections(connection)
    if connections:
        raise StillRunning(connections)
