"""Checks the chain of an account: every entry, its place, and the head."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from rota.audit import checkpoints, queries
from rota.audit.checkpoints import Checkpoint
from rota.audit.queries import Head, Stored
from rota.platform.audit import NO_HASH, commitment_of, digest_of, linked
from rota.platform.db import AccountReader, Database

PAGE = 1_000
# After this entry, the private parts of all entries before it may be gone.
ERASED = "account.erased"


@dataclass(frozen=True, slots=True)
class Problem:
    account_id: UUID
    # The entry that it is about, or the first of them.
    sequence: int
    description: str


@dataclass(slots=True)
class Chain:
    """The entries of an account, checked one after the other."""

    account_id: UUID
    sequence: int = 0
    hash: bytes = NO_HASH
    problems: list[Problem] = field(default_factory=list)
    # Hashes at these places, which somebody else has kept.
    kept: dict[int, bytes] = field(default_factory=dict)
    # The place of the checkpoint that the entries begin behind, or 0.
    begins: int = 0
    # Entries without their private part that no later entry explains.
    _without_private: list[int] = field(default_factory=list)

    def begin_behind(self, checkpoint: Checkpoint, keys: list[dict[str, Any]]) -> None:
        """Everything up to the checkpoint was deleted."""
        problem = checkpoint.problem(keys)
        if problem is None and checkpoint.account_id != self.account_id:
            problem = "the checkpoint before it belongs to another account"
        if problem:
            self._report(checkpoint.sequence + 1, problem)
        self.sequence = self.begins = checkpoint.sequence
        self.hash = checkpoint.hash
        self._check_kept(checkpoint.sequence, checkpoint.hash)

    def add(self, entry: Stored) -> None:
        expected = self.sequence + 1
        follows = entry.sequence == expected
        if not follows:
            gap = f"to {entry.sequence - 1} are" if entry.sequence - 1 > expected else "is"
            self._report(expected, f"{expected} {gap} missing")
        if entry.account_id != self.account_id:
            self._report(entry.sequence, "it belongs to another account")
        if entry.at.microsecond % 1000:
            self._report(entry.sequence, "its time was changed")
        if follows and linked(self.hash, entry.sequence, digest_of(entry)) != entry.hash:
            self._report(entry.sequence, "it was changed, or the one before it was")
        if entry.action == ERASED:
            self._without_private.clear()
        self._check_private(entry)
        self._check_kept(entry.sequence, entry.hash)
        self.sequence, self.hash = entry.sequence, entry.hash

    def _check_kept(self, sequence: int, found: bytes) -> None:
        if sequence in self.kept and self.kept[sequence] != found:
            self._report(sequence, "it differs from the head that was kept")

    def _check_private(self, entry: Stored) -> None:
        if entry.private is None and entry.salt is None:
            self._without_private.append(entry.sequence)
        elif entry.private is None or entry.salt is None:
            self._report(entry.sequence, "a part of its details is missing")
        elif commitment_of(entry.salt, entry.private) != entry.commitment:
            self._report(entry.sequence, "its details were changed")

    def finish(self, head: Head | None) -> list[Problem]:
        """All problems, after the last entry."""
        for sequence in self._without_private:
            self._report(
                sequence, "its details are missing, and no entry says that they were erased"
            )
        if head is None:
            if self.sequence:
                self._report(self.sequence, "the account has entries and no head")
        elif head.sequence > self.sequence:
            self._report(self.sequence + 1, f"{self.sequence + 1} to {head.sequence} are missing")
        elif head.sequence < self.sequence or head.hash != self.hash:
            self._report(head.sequence, "the head is not the newest entry")
        for sequence in self.kept:
            if sequence < self.begins:
                self._report(
                    sequence,
                    f"the head that was kept cannot be compared: entries up to {self.begins} were "
                    "deleted",
                )
            elif sequence > self.sequence:
                self._report(sequence, "the trail ends before the head that was kept")
        return self.problems

    def _report(self, sequence: int, description: str) -> None:
        self.problems.append(Problem(self.account_id, sequence, description))


async def problems(
    tx: AccountReader,
    kept: dict[int, bytes] | None = None,
    keys: list[dict[str, Any]] | None = None,
) -> list[Problem]:
    """Every problem in an account's chain. Needs a snapshot. The keys check its checkpoint."""
    chain = Chain(tx.account_id, kept=kept or {})
    if (checkpoint := await checkpoints.find(tx)) is not None:
        chain.begin_behind(checkpoint, keys or [])
    # An entry before the first one is found, too.
    last = -(2**63)
    while entries := await queries.after(tx, last, PAGE):
        for entry in entries:
            chain.add(entry)
        last = entries[-1].sequence
    return chain.finish(await queries.find_head(tx))


async def verify(
    db: Database,
    account_ids: list[UUID],
    kept: dict[UUID, dict[int, bytes]],
    keys: list[dict[str, Any]],
) -> AsyncIterator[tuple[int, list[Problem]]]:
    """Yields how many entries each account has, and its problems."""
    for account_id in account_ids:
        async with db.snapshot(account_id) as tx:
            found = await problems(tx, kept.get(account_id), keys)
            yield (await queries.head(tx)).sequence, found
