"""The file with what must survive a restore: JSON lines, with a digest at the end.

It has IDs and hashes, and no secrets or texts. The first line describes the file, each of the next
has the state of one account, and the last one has the digest of all bytes before it.
"""

import hashlib
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from rota.platform import clock, json
from rota.platform.errors import Conflict
from rota.platform.ids import from_wire, to_wire

FORMAT, VERSION = "rota-restore", 2
# Lists of what happened since a moment, not states. Those of several files are joined. A task that
# was cancelled and retried later is cancelled: a person can retry it again.
_HAPPENED = ("cancelled", "writes", "grants")


class NotWritable(Conflict):
    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"Cannot write {path}: {problem}. Choose another --output.")


class NotAFile(Conflict):
    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path} cannot be used: {problem}. Collect it again.")


@dataclass(frozen=True, slots=True)
class Header:
    # The moment that was named, and the earlier one from which changes were read.
    since: datetime
    read_from: datetime
    collected_at: datetime
    # Signing keys that were valid, and sign-in tokens that were used.
    signing_keys: list[str]
    used_tokens: list[tuple[bytes, datetime]]
    # Whether nothing used the database any more.
    final: bool = False

    def wire(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "since": self.since.isoformat(),
            "readFrom": self.read_from.isoformat(),
            "collectedAt": self.collected_at.isoformat(),
            "signingKeys": self.signing_keys,
            "final": self.final,
            "usedTokens": [[token.hex(), until.isoformat()] for token, until in self.used_tokens],
        }

    @classmethod
    def of(cls, found: dict[str, Any]) -> "Header":
        return cls(
            datetime.fromisoformat(found["since"]),
            datetime.fromisoformat(found["readFrom"]),
            datetime.fromisoformat(found["collectedAt"]),
            found["signingKeys"],
            [
                (bytes.fromhex(token), datetime.fromisoformat(until))
                for token, until in found["usedTokens"]
            ],
            found["final"],
        )


@dataclass(frozen=True, slots=True)
class Known:
    """The state of an account, and when it was read."""

    account_id: UUID
    read_at: datetime
    state: dict[str, Any]

    @property
    def is_company(self) -> bool:
        return bool(self.state["kind"] == "company")

    def ids(self, name: str) -> list[UUID]:
        return [UUID(text) for text in self.state[name]]


@dataclass(frozen=True, slots=True)
class Collected:
    """One file."""

    header: Header
    states: dict[UUID, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Survivors:
    """What all files have together, in the order in which they were collected."""

    files: Sequence[Collected]

    @property
    def newest(self) -> Header:
        return self.files[-1].header

    @property
    def since(self) -> datetime:
        return min(each.header.since for each in self.files)

    @property
    def read_from(self) -> datetime:
        return min(each.header.read_from for each in self.files)

    def after(self, at: datetime) -> "Survivors":
        """Without the files that were collected before this time."""
        return Survivors([each for each in self.files if each.header.collected_at > at])

    def gap(self) -> tuple[datetime, datetime] | None:
        """A time of which no file has the changes."""
        first, *others = sorted(
            (each.header for each in self.files), key=lambda header: header.read_from
        )
        known_until = first.collected_at
        for header in others:
            if header.since > known_until:
                return known_until, header.since
            known_until = max(known_until, header.collected_at)
        return None

    def accounts(self) -> list[Known]:
        """The newest state of each account, with everything that happened."""
        found: dict[UUID, Known] = {}
        for each in self.files:
            for account_id, state in each.states.items():
                before = found.get(account_id)
                joined = _joined(before.state, state) if before else state
                found[account_id] = Known(account_id, each.header.collected_at, joined)
        return list(found.values())


def _joined(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    happened = {
        name: list({str(each): each for each in (*older[name], *newer[name])}.values())
        for name in _HAPPENED
    }
    return newer | happened


async def write(
    path: Path, header: Header, states: AsyncIterator[tuple[UUID, dict[str, Any]]]
) -> int:
    """Writes a file that only this user can read. Returns how many accounts it has."""
    digest, accounts = hashlib.sha256(), 0
    partial = path.with_name(f"{path.name}.partial")
    with os.fdopen(_created(partial, path), "wb") as output:

        def add(line: dict[str, Any]) -> None:
            text = json.dumps(line) + b"\n"
            digest.update(text)
            output.write(text)

        add(header.wire())
        async for account_id, state in states:
            add({"account": to_wire("acct", account_id), **state})
            accounts += 1
        add({"end": {"accounts": accounts, "sha256": digest.hexdigest()}})
        output.flush()
        os.fsync(output.fileno())
    partial.rename(path)
    return accounts


def _created(partial: Path, path: Path) -> int:
    """An existing file is never replaced: it may be the only one from the old database."""
    if path.exists():
        raise NotWritable(path, "it already exists")
    try:
        return os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise NotWritable(path, str(error.strerror)) from None


def read(paths: Iterable[Path]) -> Survivors:
    files = map(_read, paths)
    return Survivors(sorted(files, key=lambda each: each.header.collected_at))


def _read(path: Path) -> Collected:
    try:
        lines = path.read_bytes().splitlines(keepends=True)
        *body, last = lines
        end = json.exact(last)["end"]
        first, *states = [json.exact(line) for line in body]
    except OSError as error:
        raise NotAFile(path, str(error.strerror)) from None
    except (ValueError, KeyError, TypeError):
        raise NotAFile(path, "its end is missing, or it is not a file of restore collect") from None
    if first.get("format") != FORMAT or first.get("version") != VERSION:
        raise NotAFile(path, "it has another format or version")
    if hashlib.sha256(b"".join(body)).hexdigest() != end["sha256"]:
        raise NotAFile(path, "its digest is wrong")
    found: dict[UUID, dict[str, Any]] = {}
    for state in states:
        account_id = from_wire("acct", state.pop("account"))
        assert account_id is not None
        found[account_id] = state
    return Collected(Header.of(first), found)


def moment(at: datetime) -> str:
    return clock.to_wire(at)
