"""A transaction cannot read or change the rows of another account.

The tables come from the database catalog, so new tables are covered automatically.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from rota.dev.stack import Stack
from rota.platform.db import DATABASE_ERRORS, Database
from rota.platform.roles import APPLICATION_ROLE
from tests.service import Person, Service
from tests.sizes import size

# Tables without tenants: they locate accounts, or belong to the service itself.
DIRECTORIES = {
    *("identities", "erased_identities", "api_key_hashes", "used_id_tokens", "signing_keys"),
    *("agents", "agent_terms", "agent_versions", "alembic_version", "sweeps"),
    "installation",
}


@pytest.fixture(scope="module")
async def people(service_a: Service) -> tuple[Person, Person]:
    """Two users, each with rows in as many tables as requests can fill."""
    ada, bob = await service_a.sign_in(), await service_a.sign_in()
    for person in (ada, bob):
        for path in ("/api/keys", "/api/tasks"):
            response = await person.post(path, {"name": "a"}, headers={"Idempotency-Key": path})
            assert response.status_code == 201, response.text
    return ada, bob


@asynccontextmanager
async def application(service: Service, *begin: str) -> AsyncIterator[Any]:
    """A transaction with the role of the service."""
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(f"SET ROLE {APPLICATION_ROLE}; BEGIN")
        for statement in begin:
            await connection.execute(statement)
        yield connection
    finally:
        await connection.close()


def as_person(person: Person) -> tuple[str, str]:
    return (
        f"SET LOCAL rota.account_id = '{person.user_id}'",
        f"SET LOCAL rota.user_id = '{person.user_id}'",
    )


async def tenant_tables(service: Service) -> dict[str, str]:
    """Every tenant table, and the column that identifies the owner of a row."""
    async with service.owner() as connection:
        rows = await connection.fetch(
            """
            SELECT c.relname AS name, array_agg(a.attname::text) AS columns
            FROM pg_class c
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
              AND NOT c.relispartition AND c.relname <> ALL ($1::text[])
            GROUP BY c.relname
            """,
            sorted(DIRECTORIES),
        )
    owner = ("account_id", "user_id", "id")
    return {row["name"]: next(c for c in owner if c in row["columns"]) for row in rows}


async def row_of(service: Service, table: str, column: str, owner: UUID) -> str | None:
    async with service.owner() as connection:
        found: str | None = await connection.fetchval(
            f"SELECT to_jsonb(t) FROM {table} t WHERE {column} = $1 LIMIT 1", owner
        )
    return found


async def test_the_application_role_has_no_privileges(service_a: Service) -> None:
    async with service_a.owner() as connection:
        role = await connection.fetchrow(
            "SELECT * FROM pg_roles WHERE rolname = $1", APPLICATION_ROLE
        )
        owned = await connection.fetchval(
            "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = $1", APPLICATION_ROLE
        )
        stronger = await connection.fetchval(
            """
            SELECT count(*) FROM pg_roles r
            WHERE pg_has_role($1, r.oid, 'MEMBER') AND (rolsuper OR rolbypassrls OR rolcreaterole)
            """,
            APPLICATION_ROLE,
        )
    privileges = ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolreplication")
    assert not any(role[name] for name in privileges)
    assert not role["rolcanlogin"]
    assert (owned, stronger) == (0, 0)


async def test_the_service_uses_the_application_role(service_a: Service) -> None:
    async with service_a.owner() as connection:
        query = "SELECT usename, query FROM pg_stat_activity WHERE application_name = 'rota'"
        assert await connection.fetch(query)
    database = Database(service_a.database_url, pool_size=1)
    await database.open()
    async with database.directory() as connection:
        assert await connection.fetchval("SELECT current_user") == APPLICATION_ROLE
    await database.close()


async def test_every_tenant_table_has_forced_row_security(
    service_a: Service,
) -> None:
    async with service_a.owner() as connection:
        rows = await connection.fetch(
            """
            SELECT relname, relrowsecurity AND relforcerowsecurity AS forced, relispartition,
                   has_table_privilege($1, oid, 'SELECT, INSERT, UPDATE, DELETE') AS reachable
            FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
            """,
            APPLICATION_ROLE,
        )
    tables = {row["relname"] for row in rows}
    assert tables >= DIRECTORIES
    # The parent table has the policies, so partitions must not be accessible directly.
    assert not [row["relname"] for row in rows if row["relispartition"] and row["reachable"]]
    bare = {row["relname"] for row in rows if not row["forced"] and not row["relispartition"]}
    assert bare == DIRECTORIES


async def test_a_transaction_without_an_account_sees_no_rows(
    service_a: Service, people: tuple[Person, Person]
) -> None:
    filled = set()
    for table in await tenant_tables(service_a):
        async with service_a.owner() as connection:
            if await connection.fetchval(f"SELECT count(*) FROM {table}"):
                filled.add(table)
        for begin in ((), ("SET LOCAL rota.account_id = ''; SET LOCAL rota.user_id = ''",)):
            async with application(service_a, *begin) as connection:
                with suppress(asyncpg.InsufficientPrivilegeError):
                    assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0, table
    assert filled >= {"users", "accounts", "sessions", "api_keys", "tasks", "events"}


async def test_an_account_sees_only_its_own_rows(
    service_a: Service, people: tuple[Person, Person]
) -> None:
    ada, _ = people
    for table, column in (await tenant_tables(service_a)).items():
        async with application(service_a, *as_person(ada)) as connection:
            try:
                rows = await connection.fetch(f"SELECT DISTINCT {column} AS owner FROM {table}")
            except asyncpg.InsufficientPrivilegeError:
                continue
        assert {row["owner"] for row in rows} <= {ada.user_id}, table


async def test_an_account_cannot_insert_a_row_of_another(
    service_a: Service, people: tuple[Person, Person]
) -> None:
    ada, bob = people
    tried = set()
    for table, column in (await tenant_tables(service_a)).items():
        row = await row_of(service_a, table, column, bob.user_id)
        if row is None:
            continue
        tried.add(table)
        async with application(service_a, *as_person(ada)) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(
                    f"INSERT INTO {table} SELECT * FROM jsonb_populate_record(null::{table}, $1)",
                    row,
                )
    assert tried >= {"users", "accounts", "sessions", "api_keys", "tasks", "events"}


async def test_an_account_cannot_change_delete_or_take_over_a_row_of_another(
    service_a: Service, people: tuple[Person, Person]
) -> None:
    ada, bob = people
    for table, column in (await tenant_tables(service_a)).items():
        for statement in (
            f"UPDATE {table} SET {column} = '{ada.user_id}' WHERE {column} = '{bob.user_id}'",
            f"UPDATE {table} SET {column} = {column} WHERE {column} = '{bob.user_id}'",
            f"DELETE FROM {table} WHERE {column} = '{bob.user_id}'",
        ):
            async with application(service_a, *as_person(ada)) as connection:
                with suppress(asyncpg.InsufficientPrivilegeError):
                    assert (await connection.execute(statement)).endswith(" 0"), statement


async def test_an_account_cannot_move_its_rows_to_another(
    service_a: Service, people: tuple[Person, Person]
) -> None:
    ada, _ = people
    stranger = UUID(int=7)
    for table, column in (await tenant_tables(service_a)).items():
        if await row_of(service_a, table, column, ada.user_id) is None:
            continue
        async with application(service_a, *as_person(ada)) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"UPDATE {table} SET {column} = $1", stranger)


async def test_accounts_that_share_connections_see_only_their_own_rows(stack: Stack) -> None:
    async with Service.start(
        stack, variant="a", name="two_connections", database_pool_size=2
    ) as service:
        people = [await service.sign_in() for _ in range(20)]
        for person in people:
            assert (await person.post("/api/keys", {"name": person.subject})).status_code == 201
        turns = people * size(10, 50)
        Random(20).shuffle(turns)
        in_flight = asyncio.Semaphore(50)

        async def check(person: Person, keys: bool) -> None:
            async with in_flight:
                response = await person.get("/api/keys" if keys else "/api/me")
            assert response.status_code == 200, response.text
            if keys:
                assert [key["name"] for key in response.json()["keys"]] == [person.subject]
            else:
                assert response.json()["user"]["id"] == f"user_{person.user_id.hex}"
                assert [a["id"] for a in response.json()["accounts"]] == [
                    f"acct_{person.user_id.hex}"
                ]

        async with asyncio.TaskGroup() as group:
            for number, person in enumerate(turns):
                group.create_task(check(person, number % 2 == 0))


@pytest.fixture
async def one_connection(service_a: Service) -> AsyncIterator[Database]:
    database = Database(service_a.database_url, pool_size=1)
    await database.open()
    yield database
    await database.close()


async def settings_left(database: Database) -> list[str]:
    """The settings that a transaction without an account finds on the connection."""
    async with database.directory() as connection:
        names = ("rota.account_id", "rota.user_id")
        values = [
            await connection.fetchval("SELECT current_setting($1, true)", name) for name in names
        ]
    return [value for value in values if value]


async def test_a_failed_transaction_is_rolled_back_and_clears_its_settings(
    one_connection: Database, people: tuple[Person, Person]
) -> None:
    ada, _ = people
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with one_connection.write(ada.user_id, ada.user_id) as tx:
            await tx.fetchval("SELECT 1/0")
    assert await settings_left(one_connection) == []

    async def fail() -> None:
        async with one_connection.write(ada.user_id, ada.user_id) as tx:
            await tx.execute("UPDATE users SET name = 'gone' WHERE id = $1", ada.user_id)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await settings_left(one_connection) == []
    async with one_connection.read(ada.user_id, ada.user_id) as reader:
        name = await reader.fetchval("SELECT name FROM users WHERE id = $1", ada.user_id)
        assert name != "gone"


async def test_a_swallowed_database_error_fails_the_commit(
    one_connection: Database, people: tuple[Person, Person]
) -> None:
    ada, _ = people

    async def swallow() -> None:
        async with one_connection.write(ada.user_id, ada.user_id) as tx:
            with suppress(asyncpg.DivisionByZeroError):
                await tx.fetchval("SELECT 1/0")

    with pytest.raises(asyncpg.InFailedSQLTransactionError):
        await swallow()
    assert await settings_left(one_connection) == []


async def test_a_read_transaction_cannot_write(
    one_connection: Database, people: tuple[Person, Person]
) -> None:
    ada, _ = people
    for transaction in (one_connection.read, one_connection.snapshot):
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with transaction(ada.user_id, ada.user_id) as connection:
                await connection.fetchval("UPDATE users SET name = 'x' RETURNING 1")


async def test_a_cancelled_transaction_clears_its_settings(
    one_connection: Database, people: tuple[Person, Person]
) -> None:
    ada, _ = people
    chance = Random(7)

    async def work() -> None:
        async with one_connection.write(ada.user_id, ada.user_id) as tx:
            await tx.fetchval("SELECT pg_sleep(0.002)")

    for _ in range(60):
        task = asyncio.create_task(work())
        # Cancel once or twice, at a random time before, during or after the transaction.
        for _ in range(chance.choice((1, 2))):
            await asyncio.wait([task], timeout=chance.random() * 0.006)
            task.cancel()
        await asyncio.wait([task])
        assert await settings_left(one_connection) == []


async def test_a_lost_connection_is_not_reused(
    one_connection: Database, people: tuple[Person, Person], service_a: Service
) -> None:
    ada, _ = people

    async def lose() -> None:
        async with one_connection.write(ada.user_id, ada.user_id) as tx:
            pid = await tx.fetchval("SELECT pg_backend_pid()")
            async with service_a.owner() as owner:
                await owner.execute("SELECT pg_terminate_backend($1)", pid)
            await tx.fetchval("SELECT pg_sleep(5)")

    with pytest.raises(DATABASE_ERRORS):
        await lose()
    assert await settings_left(one_connection) == []


async def test_a_user_can_end_only_the_own_sign_in(
    service_a: Service, people: tuple[Person, Person]
) -> None:
    ada, bob = people
    statement = "DELETE FROM identities WHERE user_id = $1"
    async with application(service_a, *as_person(ada)) as connection:
        assert await connection.execute(statement, bob.user_id) == "DELETE 0"
        assert await connection.execute(statement, ada.user_id) == "DELETE 1"
    async with application(service_a) as connection:
        assert await connection.execute("DELETE FROM identities") == "DELETE 0"
