"""What becomes of deliveries when the database fails while they are saved."""

import asyncio
from typing import Any

import pytest

from rota.composition import Composition
from rota.platform.pool import Transaction
from rota.webhooks import progress, turns
from tests.service import Person, Service
from tests.webhooks.receiver import Receiver, response
from tests.webhooks.test_turns import taken
from tests.webhooks.world import create, deliveries, happen, read, uuid_of

LOST = OSError("the connection was lost")


def fail_commit(
    patch: pytest.MonkeyPatch, name: str, *, is_committed: bool, error: BaseException = LOST
) -> None:
    """Fails in the first commit after this function of `progress`: before PostgreSQL commits, or
    before its response arrives."""
    change, commit = getattr(progress, name), Transaction._commit
    # Other transactions run at the same time.
    doomed: list[Any] = []

    async def changing(connection: Any, *values: Any, **more: Any) -> Any:
        if not doomed:
            doomed.append(connection)
        return await change(connection, *values, **more)

    async def committing(self: Transaction[Any]) -> None:
        fails = self._tx in doomed
        if is_committed or not fails:
            await commit(self)
        if fails:
            raise error

    patch.setattr(progress, name, changing)
    patch.setattr(Transaction, "_commit", committing)


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_commit_that_fails_loses_no_delivery(
    office: Service,
    person: Person,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    fails: bool,
    is_committed: bool,
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    if fails:
        receiver.answers["/"] = lambda got: response(
            500 if got.event["sequence"] > start + 5 else 200
        )
    async with office.owner() as connection:
        await connection.execute(
            "UPDATE webhooks SET attempts = 3, failing_since = now(), last_error = 'Down' "
            "WHERE id = $1",
            uuid_of(webhook),
        )
    name = "save_failure" if fails else "save"
    fail_commit(monkeypatch, name, is_committed=is_committed)
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 5)
        sender = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        with pytest.raises(OSError, match="connection was lost"):
            await sender.take(await taken(parts, person, webhook))
        await sender.aclose()
    found = await read(person, webhook)
    assert found["confirmedSequence"] == start + (5 if fails else 6)
    assert len(await deliveries(person, webhook)) == 6
    assert found["lastDeliveredAt"] is not None
    assert found["state"] == ("failing" if fails and is_committed else "active")


async def test_a_worker_that_stops_during_a_commit_saves_its_deliveries_once(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    fail_commit(monkeypatch, "save", is_committed=True, error=asyncio.CancelledError())
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 5)
        sender = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        with pytest.raises(asyncio.CancelledError):
            await sender.take(await taken(parts, person, webhook))
        await sender.aclose()
    assert len(await deliveries(person, webhook)) == 6
