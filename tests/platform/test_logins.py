"""The service refuses a database login whose rights row security does not limit."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from rota.dev.stack import Stack
from rota.platform.db import Database
from rota.platform.roles import APPLICATION_ROLE, RELAY_ROLE
from rota.platform.start_checks import StartRefused
from tests.service import Person, Service

LOGIN = "only_a_member"


@pytest.fixture
async def login(stack: Stack, service_a: Service) -> AsyncIterator[str]:
    """The URL of a login that can use the application's role and nothing else."""
    async with service_a.owner() as owner:
        await owner.execute(f"CREATE ROLE {LOGIN} LOGIN NOINHERIT PASSWORD 'word'")
        await owner.execute(f"GRANT {APPLICATION_ROLE} TO {LOGIN}")
    at = urlsplit(service_a.database_url)
    yield f"postgresql://{LOGIN}:word@127.0.0.1:{at.port}{at.path}"
    async with service_a.owner() as owner:
        await owner.execute(f"DROP OWNED BY {LOGIN}; DROP ROLE {LOGIN}")


async def refusal(url: str, *, production: bool) -> str:
    database = Database(url, pool_size=1, production=production)
    with pytest.raises(StartRefused) as raised:
        await database.open()
    return str(raised.value)


async def test_a_login_that_owns_nothing_is_accepted_in_production(login: str) -> None:
    database = Database(login, pool_size=1, production=True)
    await database.open()
    async with database.directory() as connection:
        found = await connection.fetchrow("SELECT current_user, session_user")
    await database.close()
    assert tuple(found) == (APPLICATION_ROLE, LOGIN)


async def test_such_a_login_can_do_nothing_outside_a_transaction(login: str) -> None:
    connection = await asyncpg.connect(login)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetchval("SELECT count(*) FROM tasks")
    await connection.close()


async def test_production_refuses_the_owner_of_the_tables(service_a: Service) -> None:
    assert "ROTA_MIGRATION_DATABASE_URL" in await refusal(service_a.database_url, production=True)


async def test_production_refuses_a_superuser(stack: Stack, service_a: Service) -> None:
    admin = stack.endpoints.admin_database_url
    assert admin
    url = admin.rpartition("/")[0] + "/" + service_a.database_url.rpartition("/")[2]
    assert "superuser" in await refusal(url, production=True)
    database = Database(url, pool_size=1)
    await database.open()
    async with database.directory() as connection:
        assert await connection.fetchval("SELECT current_user") == APPLICATION_ROLE
    await database.close()


async def test_a_login_without_the_role_is_refused(login: str, service_a: Service) -> None:
    async with service_a.owner() as owner:
        await owner.execute(f"REVOKE {APPLICATION_ROLE} FROM {LOGIN}")
    assert f"GRANT {APPLICATION_ROLE} TO" in await refusal(login, production=False)


async def test_a_role_that_owns_a_table_is_refused(service_a: Service) -> None:
    async with service_a.owner() as owner:
        await owner.execute("CREATE TABLE stray (n int)")
        await owner.execute(f"ALTER TABLE stray OWNER TO {APPLICATION_ROLE}")
    try:
        assert "must not own tables" in await refusal(service_a.database_url, production=False)
    finally:
        async with service_a.owner() as owner:
            await owner.execute("DROP TABLE stray")


async def test_a_database_without_the_schema_is_refused(stack: Stack) -> None:
    """The role exists in the cluster, but this login must not depend on that."""
    database = Database(stack.endpoints.database_url, pool_size=1)
    database._application = database._application.replace(APPLICATION_ROLE, "rota_missing")
    with pytest.raises(StartRefused, match="rota admin migrate"):
        await database.open()


async def test_a_worker_needs_the_role_of_the_relay(login: str, service_a: Service) -> None:
    database = Database(login, pool_size=1)
    await database.open()
    with pytest.raises(StartRefused, match=f"GRANT {RELAY_ROLE} TO"):
        await database.check_relay()
    async with service_a.owner() as owner:
        await owner.execute(f"GRANT {RELAY_ROLE} TO {LOGIN}")
    await database.check_relay()
    await database.close()


async def test_only_the_relays_role_reads_the_rows_of_all_accounts(
    service_a: Service, login: str
) -> None:
    people: list[Person] = [await service_a.sign_in() for _ in range(2)]
    accounts = {person.user_id for person in people}
    async with service_a.owner() as owner:
        for account in accounts:
            await owner.execute(
                "INSERT INTO outbox (account_id, kind, payload, due_at)"
                " VALUES ($1, 'test.nothing', '{}', now() + interval '1 day')",
                account,
            )
    query = "SELECT DISTINCT account_id FROM outbox"
    database = Database(service_a.database_url, pool_size=1)
    await database.open()
    async with database.relay() as connection:
        assert {row["account_id"] for row in await connection.fetch(query)} >= accounts
    async with database.write(people[0].user_id) as tx:
        # What gave the right before.
        await tx.execute("SET LOCAL rota.relay = 'on'")
        assert {row["account_id"] for row in await tx.fetch(query)} == {people[0].user_id}
    await database.close()
    limited = Database(login, pool_size=1)
    await limited.open()
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with limited.directory() as connection:
            await connection.execute(f"SET LOCAL ROLE {RELAY_ROLE}")
    await limited.close()
