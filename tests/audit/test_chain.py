"""Nothing in a trail can be changed, removed, inserted or moved without being found."""

import asyncio
import contextlib
import random
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from rota.audit import queries, verify
from rota.platform import audit
from rota.platform.db import NO_USER, AccountReader, Database
from tests.audit.world import entries_of, problems_of
from tests.platform.test_row_security import application, as_person
from tests.service import Person, Service
from tests.sizes import size
from tests.tasks.world import newcomer

MUTATIONS = size(100, 1_000)
ENTRIES = 30


@pytest.fixture
async def person(service_a: Service) -> Person:
    """Somebody with a trail of many entries."""
    found = await newcomer(service_a)
    for number in range(ENTRIES):
        response = await found.post("/api/tasks", {"name": f"Task {number}"})
        assert response.status_code == 201, response.text
    return found


class Mutation:
    """One change of one row, made as the owner of the database."""

    def __init__(self, connection: Any, account_id: UUID, seed: int) -> None:
        self.connection = connection
        self.account_id = account_id
        self.random = random.Random(seed)

    async def apply(self) -> str:
        kinds = (self.change, self.change, self.remove, self.insert, self.reorder, self.head)
        return await self.random.choice(kinds)()

    async def _run(self, statement: str, *arguments: object) -> None:
        done = await self.connection.execute(statement, self.account_id, *arguments)
        assert not done.endswith(" 0"), statement

    def _place(self) -> int:
        # The ends are the most likely to be forgotten.
        return self.random.choice((1, ENTRIES, self.random.randint(1, ENTRIES)))

    async def change(self) -> str:
        place = self._place()
        change = self.random.choice(
            (
                "at = at + interval '1 microsecond'",
                "at = at - interval '1 day'",
                "actor = 'service'",
                "user_id = NULL",
                f"user_id = '{uuid4()}'",
                "via = NULL",
                "via = via || 'x'",
                "action = 'task.deleted'",
                "resource = overlay(resource placing 'a0' from 6)",
                "commitment = sha256(commitment)",
                "salt = sha256(salt)",
                "salt = NULL",
                "private = private || ' '",
                "private = replace(private, 'PENDING', 'RUNNING')",
                "private = NULL",
                "private = NULL, salt = NULL",
                "hash = sha256(hash)",
                "sequence = sequence + 1000",
                "sequence = -sequence",
                f"account_id = '{uuid4()}'",
                # As someone would do who knows how commitments work.
                "private = '{}', salt = NULL, commitment = sha256('{}')",
            )
        )
        await self._run(
            f"UPDATE audit_entries SET {change} WHERE account_id = $1 AND sequence = $2", place
        )
        return f"{change} at {place}"

    async def remove(self) -> str:
        place = self._place()
        await self._run("DELETE FROM audit_entries WHERE account_id = $1 AND sequence = $2", place)
        return f"removed {place}"

    async def insert(self) -> str:
        """A copy of an entry, in a place that is free, or that becomes free."""
        place, free = self._place(), self.random.choice((0, -1, ENTRIES + 1, ENTRIES + 5))
        await self._run(
            """
            INSERT INTO audit_entries
            SELECT account_id, $3, at, actor, user_id, via, action, resource, commitment, salt,
                   private, hash
            FROM audit_entries WHERE account_id = $1 AND sequence = $2
            """,
            place,
            free,
        )
        return f"inserted {free}"

    async def reorder(self) -> str:
        first, second = self.random.sample(range(1, ENTRIES + 1), 2)
        for before, after in ((first, 10_000), (second, first), (10_000, second)):
            await self._run(
                "UPDATE audit_entries SET sequence = $3 WHERE account_id = $1 AND sequence = $2",
                before,
                after,
            )
        return f"swapped {first} and {second}"

    async def head(self) -> str:
        change = self.random.choice(
            (
                "UPDATE audit_heads SET sequence = sequence - 1 WHERE account_id = $1",
                "UPDATE audit_heads SET sequence = sequence + 1 WHERE account_id = $1",
                "UPDATE audit_heads SET hash = sha256(hash) WHERE account_id = $1",
                "DELETE FROM audit_heads WHERE account_id = $1",
            )
        )
        await self._run(change)
        return change


async def test_any_single_change_is_found(person: Person) -> None:
    changed = 0
    async with person.service.owner() as connection:
        assert await problems_of(connection, person.user_id) == []
        for seed in range(MUTATIONS):
            transaction = connection.transaction()
            await transaction.start()
            before = await _rows(connection, person)
            label = await Mutation(connection, person.user_id, seed).apply()
            # Some changes write what is there already.
            if await _rows(connection, person) != before:
                changed += 1
                assert await problems_of(connection, person.user_id), label
            await transaction.rollback()
        assert await problems_of(connection, person.user_id) == []
    assert changed > MUTATIONS * 0.9


async def _rows(connection: Any, person: Person) -> list[tuple[Any, ...]]:
    statements = (
        "SELECT * FROM audit_entries WHERE account_id = $1 ORDER BY sequence",
        "SELECT * FROM audit_heads WHERE account_id = $1",
    )
    return [
        tuple(row) for each in statements for row in await connection.fetch(each, person.user_id)
    ]


async def test_a_rebuilt_trail_does_not_lead_to_a_head_that_was_kept(person: Person) -> None:
    """Who owns the database can rebuild all of it. A head that somebody else has kept shows it."""
    async with person.service.owner() as connection:
        tx = AccountReader(connection, person.user_id, NO_USER)
        kept = await queries.head(tx)
        hashes = {kept.sequence: kept.hash}
        assert await verify.problems(tx, hashes) == []
        await _rebuild_without(connection, person.user_id, 7)
        assert await verify.problems(tx) == []
        found = await verify.problems(tx, hashes)
    assert [problem.description for problem in found] == [
        "the trail ends before the head that was kept"
    ]


async def _rebuild_without(connection: Any, account_id: UUID, place: int) -> None:
    entries = await queries.after(AccountReader(connection, account_id, NO_USER), 0, 1_000)
    await connection.execute("DELETE FROM audit_entries WHERE account_id = $1", account_id)
    kept = [entry for entry in entries if entry.sequence != place]
    previous = audit.NO_HASH
    for sequence, entry in enumerate(kept, 1):
        previous = audit.linked(previous, sequence, audit.digest_of(entry))
        values = (entry.at, entry.actor, entry.user_id, entry.via, entry.action, entry.resource)
        private = (entry.commitment, entry.salt, entry.private, previous)
        await connection.execute(
            "INSERT INTO audit_entries VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            account_id,
            sequence,
            *values,
            *private,
        )
    await connection.execute(
        "UPDATE audit_heads SET sequence = $2, hash = $3 WHERE account_id = $1",
        account_id,
        len(kept),
        previous,
    )


async def test_erased_details_verify_only_behind_an_entry_that_says_so(person: Person) -> None:
    service = person.service
    erase = "UPDATE audit_entries SET private = NULL, salt = NULL WHERE account_id = $1"
    async with service.owner() as connection:
        await connection.execute(f"{erase} AND sequence < 10", person.user_id)
        assert len(await problems_of(connection, person.user_id)) == 9
    db = Database(service.database_url, pool_size=1)
    await db.open()
    async with db.write(person.user_id) as tx:
        tx.record("account.erased", {})
    await db.close()
    async with service.owner() as connection:
        assert await problems_of(connection, person.user_id) == []
        # The entry itself is not covered.
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(f"{erase} AND action = 'account.erased'", person.user_id)
        assert len(await problems_of(connection, person.user_id)) == 1
        await transaction.rollback()


async def test_concurrent_transactions_make_one_chain(service_a: Service) -> None:
    person = await newcomer(service_a)
    answers = await asyncio.gather(
        *[person.post("/api/tasks", {"name": str(number)}) for number in range(40)],
        *[person.post("/api/tasks", {"name": ""}) for _ in range(10)],
        *[
            person.request("PATCH", "/api/credits/settings", json={"alertBelowCents": number})
            for number in range(1, 21)
        ],
    )
    succeeded = sum(answer.status_code < 300 for answer in answers)
    assert succeeded == 60
    entries = await entries_of(service_a, person.user_id)
    assert [each["sequence"] for each in entries] == list(range(1, succeeded + 1))
    async with service_a.owner() as connection:
        assert await problems_of(connection, person.user_id) == []


async def test_a_transaction_that_fails_leaves_no_entry(service_a: Service) -> None:
    person = await newcomer(service_a)
    db = Database(service_a.database_url, pool_size=1)
    await db.open()
    with contextlib.suppress(ZeroDivisionError):
        async with db.write(person.user_id) as tx:
            tx.record("test.failed", {})
            raise ZeroDivisionError
    async with db.write(person.user_id) as tx:
        tx.record("test.committed", {"text": "it's \\ \u2028 '); DROP TABLE audit_entries; --"})
    await db.close()
    [entry] = await entries_of(service_a, person.user_id)
    assert entry["action"] == "test.committed"
    assert entry["private"]["details"]["text"].startswith("it's \\ \u2028 ');")


async def test_large_details_are_stored_as_a_digest(service_a: Service) -> None:
    person = await newcomer(service_a)
    db = Database(service_a.database_url, pool_size=1)
    await db.open()
    async with db.write(person.user_id) as tx:
        tx.record("test.large", {"text": "x" * 100_000})
    await db.close()
    [entry] = await entries_of(service_a, person.user_id)
    assert entry["private"]["details"].keys() == {"digest"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET action = 'x'",
        "DELETE FROM audit_entries",
        "INSERT INTO audit_entries SELECT * FROM audit_entries",
        "TRUNCATE audit_entries",
        "UPDATE audit_heads SET sequence = 0",
        "DELETE FROM audit_heads",
    ],
)
async def test_the_service_can_only_append(person: Person, statement: str) -> None:
    async with application(person.service, *as_person(person)) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


@pytest.mark.parametrize("as_arrays", [False, True])
async def test_an_entry_needs_a_transaction_of_its_account(person: Person, as_arrays: bool) -> None:
    entry = audit.Entry.of(person.user_id, None, "test.lost", None, {})
    statement = audit.append_statements([entry], person.user_id, as_arrays=as_arrays)
    for bound in ((), as_person(await newcomer(person.service))):
        async with application(person.service, *bound) as connection:
            with pytest.raises(asyncpg.RaiseError, match="a transaction of its account"):
                await connection.execute(statement)


@pytest.mark.parametrize("name", ["bytea", "int8", "uuid", "text", "timestamptz"])
@pytest.mark.parametrize("as_arrays", [False, True])
async def test_a_type_of_the_session_does_not_run_with_the_rights_of_the_owner(
    person: Person, name: str, as_arrays: bool
) -> None:
    entry = audit.Entry.of(person.user_id, None, "test.types", None, {})
    statement = audit.append_statements([entry], person.user_id, as_arrays=as_arrays)
    async with application(person.service, *as_person(person)) as connection:
        await connection.execute(
            f"""
            CREATE FUNCTION pg_temp.refuse(pg_catalog.{name}) RETURNS boolean LANGUAGE plpgsql
                AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
            CREATE DOMAIN pg_temp."{name}" AS pg_catalog.{name} CHECK (pg_temp.refuse(VALUE));
            """
        )
        await connection.execute(statement)


async def test_many_entries_of_many_transactions_make_one_chain(service_a: Service) -> None:
    person = await newcomer(service_a)
    db = Database(service_a.database_url, pool_size=8)
    await db.open()

    async def append(count: int) -> None:
        async with db.write(person.user_id) as tx:
            for number in range(count):
                tx.record("test.many", {"text": f"{count}: {number} of '\\' \0 \u2028 \U0001f600"})

    counts = [1, 2, 300, 1, 40, 7, 1, 1]
    await asyncio.gather(*map(append, counts))
    await db.close()
    entries = await entries_of(service_a, person.user_id)
    assert [each["sequence"] for each in entries] == list(range(1, sum(counts) + 1))
    # The entries of a transaction stay together and in order.
    texts = [each["private"]["details"]["text"] for each in entries]
    assert [text for text in texts if text.startswith("300:")] == [
        f"300: {number} of '\\' \0 \u2028 \U0001f600" for number in range(300)
    ]
    async with service_a.owner() as connection:
        assert await problems_of(connection, person.user_id) == []
