"""Tool-server credentials: bound to their row, never returned, and rotated while in use."""

import asyncio
import base64
import os
import sys
import tracemalloc
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from rota.dev.stack import Stack
from rota.platform import idempotency
from rota.platform.crypto import SealBroken, Vault
from rota.platform.db import Database
from rota.platform.ids import from_wire, new_uuid
from rota.secret_rotation import rotate_all
from tests.mcp.conftest import LOCAL, connect, invoke
from tests.mcp.peers import Peer
from tests.service import Person, Service, environment
from tests.tasks.world import newcomer

TOKEN = "planted-4c1f7e9a-token"
ROWS = int(os.environ.get("ROTA_ROTATE_ROWS", "1000"))


def bearer(token: str = TOKEN) -> dict[str, Any]:
    return {"auth": {"type": "bearer", "token": token}}


def without_key_id(key: bytes, plaintext: bytes, context: str) -> bytes:
    """A sealed value in the first format, which did not contain a key ID."""
    bound = b"\x01" + context.encode()
    data_key, wrap, nonce = AESGCM.generate_key(256), os.urandom(12), os.urandom(12)
    wrapped = AESGCM(key).encrypt(wrap, data_key, bound)
    return b"\x01" + wrap + wrapped + nonce + AESGCM(data_key).encrypt(nonce, plaintext, bound)


def test_a_sealed_value_opens_only_in_its_own_row() -> None:
    vault = Vault(os.urandom(32))
    sealed = vault.seal(b"secret", "a/1/x")
    assert vault.open(sealed, "a/1/x") == b"secret"
    for context in ("a/2/x", "b/1/x", "a/1/y", ""):
        with pytest.raises(SealBroken):
            vault.open(sealed, context)


def test_an_altered_value_does_not_open() -> None:
    vault = Vault(os.urandom(32))
    sealed = vault.seal(b"secret", "c")
    for at in range(len(sealed)):
        altered = bytearray(sealed)
        altered[at] ^= 1
        with pytest.raises(SealBroken):
            vault.open(bytes(altered), "c")
    for length in range(len(sealed)):
        with pytest.raises(SealBroken):
            vault.open(sealed[:length], "c")
    # The wrapped key of one value with the body of another.
    other = vault.seal(b"other", "c")
    with pytest.raises(SealBroken):
        vault.open(sealed[:69] + other[69:], "c")


def test_old_keys_open_values_until_they_are_removed() -> None:
    old, new = os.urandom(32), os.urandom(32)
    before, between, after = Vault(old), Vault(new, old), Vault(new)
    sealed = before.seal(b"secret", "c")
    assert between.open(sealed, "c") == b"secret"
    assert not between.is_current(sealed)
    with pytest.raises(SealBroken):
        after.open(sealed, "c")
    rewrapped = between.rewrap(sealed, "c")
    assert between.is_current(rewrapped)
    assert after.open(rewrapped, "c") == b"secret"
    # The body does not change.
    assert rewrapped[-30:] == sealed[-30:]
    with pytest.raises(SealBroken):
        between.rewrap(sealed, "d")
    first = without_key_id(old, b"secret", "c")
    assert before.open(first, "c") == between.open(first, "c") == b"secret"
    assert after.open(between.rewrap(first, "c"), "c") == b"secret"
    with pytest.raises(SealBroken):
        after.open(first, "c")


async def swap(person: Person, mine: str, theirs: str) -> None:
    async with person.service.owner() as connection:
        await connection.execute(
            "UPDATE mcp_servers SET sealed_headers = (SELECT sealed_headers FROM mcp_servers"
            " WHERE id = $2) WHERE id = $1",
            from_wire("mcp", mine),
            from_wire("mcp", theirs),
        )


async def test_a_swapped_or_altered_secret_is_refused(stack: Stack) -> None:
    async with (
        Service.start(
            stack, variant="a", name="mcp_swap", egress_allow=LOCAL, mcp_idle_s=0.1
        ) as service,
        Peer(token="one").serve() as one,
        Peer(token="two").serve() as two,
    ):
        ada, bob = await newcomer(service), await newcomer(service)
        mine = await connect(ada, one.url, **bearer("one"))
        theirs = await connect(bob, two.url, **bearer("two"))
        await swap(ada, mine["id"], theirs["id"])
        await until_refused(ada, mine)
        seen = len(one.headers)
        answer = await invoke(ada, mine, "add", {"a": 1, "b": 2})
        assert answer.status_code == 502
        ping = (await ada.post(f"/api/mcp/{mine['id']}/ping")).json()
        assert ping["status"] == "AUTH_FAILED"
        assert len(one.headers) == seen
        assert (await invoke(bob, theirs, "add", {"a": 1, "b": 2})).status_code == 200
        async with service.owner() as connection:
            await connection.execute(
                "UPDATE mcp_servers SET sealed_headers = set_byte(sealed_headers, 30,"
                " 255 - get_byte(sealed_headers, 30)) WHERE id = $1",
                from_wire("mcp", theirs["id"]),
            )
        await until_refused(bob, theirs)


async def until_refused(person: Person, server: dict[str, Any]) -> None:
    """Calls until the open session is closed. The next session needs the secret."""
    async with asyncio.timeout(30):
        while (await invoke(person, server, "add", {"a": 1, "b": 2})).status_code != 502:
            await asyncio.sleep(0.5)


async def everything_in(service: Service) -> str:
    """The whole database as text, with bytes in hexadecimal."""
    parts: list[str] = []
    async with service.owner() as connection:
        tables = await connection.fetch(
            "SELECT c.oid::regclass::text AS name FROM pg_class c"
            " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        )
        for table in tables:
            rows = await connection.fetch(f"SELECT t::text AS text FROM {table['name']} t")
            parts += [row["text"] for row in rows]
    return "\n".join(parts)


def forms(secret: str) -> list[str]:
    raw = secret.encode()
    return [secret, raw.hex(), base64.b64encode(raw).decode().rstrip("="), secret[::-1]]


async def test_a_secret_appears_in_no_response_row_or_log(
    person: Person, capfd: pytest.CaptureFixture[str]
) -> None:
    async with Peer(token=TOKEN).serve() as peer:
        key = {"Idempotency-Key": "secret"}
        body = {"name": "vault", "url": peer.url, **bearer(), "headers": {"X-Team": f"x-{TOKEN}"}}
        answer = await person.post("/api/mcp", body, headers=key)
        assert answer.status_code == 201
        server = answer.json()["server"]
        answers = [
            answer,
            await person.post("/api/mcp", body, headers=key),
            await person.post("/api/mcp", {**body, "transport": "nonsense"}),
            await person.post(
                "/api/mcp", {**body, "auth": {"type": "bearer", "token": TOKEN + "\n"}}
            ),
            await person.post("/api/mcp", {**body, "headers": {"Host": TOKEN}}),
            await person.get("/api/mcp"),
            await person.get(f"/api/mcp/{server['id']}/tools"),
            await invoke(person, server, "add", {"a": 1, "b": 2}),
            await person.request("PATCH", f"/api/mcp/{server['id']}", json={"headers": None}),
            await person.request(
                "PATCH", f"/api/mcp/{server['id']}", json={"headers": body["headers"]}
            ),
            await person.request(
                "PATCH", f"/api/mcp/{server['id']}", json={"url": "http://127.0.0.1:9/"}
            ),
            await person.get(f"/api/mcp/{server['id']}"),
        ]
        assert peer.headers[-1]["x-team"] == f"x-{TOKEN}"
        peer.status = 500
        answers.append(await invoke(person, server, "add", {"a": 1, "b": 2}))
        answers.append(await person.post(f"/api/mcp/{server['id']}/ping"))
    responses = "\n".join(f"{each.text}\n{each.headers}" for each in answers)
    stored = await everything_in(person.service)
    logged = "".join(capfd.readouterr())
    for form in forms(TOKEN):
        assert form not in responses
        assert form not in stored
        assert form not in logged


@pytest.mark.long
async def test_keys_are_rotated_while_tools_are_called(stack: Stack) -> None:
    """Every row is rotated, and tool calls keep working meanwhile."""
    old, new = os.urandom(32), os.urandom(32)
    encoded = [SecretStr(base64.b64encode(key).decode()) for key in (old, new)]
    before, between = Vault(old), Vault(new, old)
    async with (
        Peer(token=TOKEN).serve() as peer,
        Service.start(
            stack,
            variant="a",
            name="mcp_rotate",
            egress_allow=LOCAL,
            secret_key=encoded[0],
            mcp_idle_s=0.05,
        ) as service,
    ):
        person = await newcomer(service)
        server = await connect(person, peer.url, **bearer())
        rows = []
        for number in range(ROWS):
            account_id, server_id = new_uuid(), new_uuid()
            context = f"mcp_servers/{account_id}/{server_id}/sealed_headers"
            seal = before.seal if number % 2 else (lambda p, c: without_key_id(old, p, c))
            rows.append((account_id, server_id, seal(b'{"A":"b"}', context)))
        async with service.owner() as connection:
            await connection.executemany(
                "INSERT INTO mcp_servers (account_id, id, name, url, transport, status,"
                " sealed_headers, last_checked_at, check_due_at, created_at, updated_at) VALUES"
                " ($1, $2, 'x', 'https://x.test/', 'sse', 'CONNECTED', $3, now(),"
                " 'infinity', now(), now())",
                rows,
            )
        async with service.process(
            secret_key=encoded[1], secret_keys_old=(encoded[0],)
        ) as restarted:
            user = Person(restarted, "p", person.token, person.user_id)
            stop = asyncio.Event()
            answered: list[int] = []

            async def use() -> None:
                while not stop.is_set():
                    answered.append(
                        (await invoke(user, server, "add", {"a": 1, "b": 2})).status_code
                    )

            using = asyncio.create_task(use())
            db = Database(service.database_url, pool_size=2)
            await db.open()
            counts = await rotate_all(db, service.database_url, between)
            again = await rotate_all(db, service.database_url, between)
            stop.set()
            await using
            await db.close()
            command = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "rota.cli",
                "admin",
                "secrets",
                "rotate",
                env=os.environ | environment(restarted.settings),
                stdout=asyncio.subprocess.PIPE,
            )
            said, _ = await command.communicate()
            assert command.returncode == 0
            assert b"tool servers: 0 encrypted with the current key, 0 unreadable" in said
            assert counts["tool servers"] == (ROWS + 1, 0)
            assert counts["signing keys"][0] == 1
            assert {count for count, _ in again.values()} == {0}
            assert answered
            assert set(answered) == {200}
        async with service.owner() as connection:
            rotated = await connection.fetch(
                "SELECT account_id, id, sealed_headers FROM mcp_servers"
            )
    after = Vault(new)
    for row in rotated:
        context = f"mcp_servers/{row['account_id']}/{row['id']}/sealed_headers"
        assert after.open(row["sealed_headers"], context)


async def test_large_stored_responses_are_rotated_a_few_at_a_time(stack: Stack) -> None:
    old, new = os.urandom(32), os.urandom(32)
    key = SecretStr(base64.b64encode(old).decode())
    rows, size = 100, 512 * 1024
    account_id = new_uuid()
    async with Service.start(
        stack, variant="a", name="rotate_responses", secret_key=key
    ) as service:
        async with service.owner() as connection:
            for number in range(rows):
                context = idempotency.seal_context(account_id, str(number))
                await connection.execute(
                    "INSERT INTO idempotency_keys VALUES ($1, $2, '', 200, $3)",
                    account_id,
                    str(number),
                    Vault(old).seal(bytes(size), context),
                )
        db = Database(service.database_url, pool_size=1)
        await db.open()
        tracemalloc.start()
        counts = await rotate_all(db, service.database_url, Vault(new, old))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await db.close()
    assert counts["stored responses"] == (rows, 0)
    assert peak < rows * size
