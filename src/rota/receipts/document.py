"""The document of a receipt, and its check. The check needs nothing but the document and the keys.

Texts are not part of it: arguments, results and what was decided about are there as SHA-256
hashes. Each decision, call and ledger entry has the hash of its own canonical JSON, and each audit
entry has its hash in the chain with the one before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.audit.queries import Head, Stored
from rota.credits.queries import Movement
from rota.platform import clock
from rota.platform.audit import digest_of, linked
from rota.platform.canonical import canonical_json, digest
from rota.platform.ids import from_wire, to_wire
from rota.platform.signatures import NotSigned, verified
from rota.runs.steps import Step
from rota.tasks.model import Actor, Review, Task

KIND = "rota-receipt"
VERSION = 1
_AMOUNTS = ("allowance", "topup", "held", "spent", "owed", "granted", "outside")


def build(
    issuer: str,
    account_id: UUID,
    task: Task,
    reviews: Iterable[Review],
    calls: Sequence[dict[str, Any]],
    movements: Iterable[Movement],
    entries: Iterable[tuple[Stored, bytes]],
    head: Head,
    now: datetime,
) -> dict[str, Any]:
    """The document. `calls` are made with `call`, because their texts need much memory together."""
    ledger = [_hashed(_movement(each)) for each in movements]
    return {
        "version": VERSION,
        "issuer": issuer,
        "at": clock.to_wire(now),
        "account": to_wire("acct", account_id),
        "task": to_wire("task", task.id),
        "status": task.status,
        "run": task.run,
        "agent": f"{task.agent}@{task.agent_version}" if task.agent else None,
        "createdAt": clock.to_wire(task.created_at),
        "finishedAt": _time(task.finished_at),
        "input": digest(task.input),
        "output": digest(task.output) if task.output is not None else None,
        "decisions": [_hashed(_decision(each)) for each in reviews],
        "calls": calls,
        "ledger": ledger,
        "spentMicros": sum(each["spent"] for each in ledger),
        "audit": [_entry(entry, previous) for entry, previous in entries],
        "head": {"sequence": head.sequence, "hash": head.hash.hex()},
    }


def _hashed(item: dict[str, Any]) -> dict[str, Any]:
    return item | {"hash": digest(canonical_json(item))}


def _time(moment: datetime | None) -> str | None:
    return clock.to_wire(moment) if moment else None


def _decision(review: Review) -> dict[str, Any]:
    by = review.decided_with
    return {
        "number": review.number,
        "run": review.run,
        "gate": review.gate,
        "state": review.state,
        "resumed": review.resumed,
        "requestedAt": clock.to_wire(review.requested_at),
        "decidedAt": _time(review.decided_at),
        "decidedBy": to_wire("user", review.decided_by) if review.decided_by else None,
        "via": by["via"] if by else None,
        "keyId": by["keyId"] if by else None,
        "ruleId": by.get("ruleId") if by else None,
        # Of what the person saw and decided about.
        "digest": review.digest,
        "items": [
            {
                "id": item["id"],
                "decision": item["decision"],
                "edited": bool(item.get("edited")),
                "decidedBy": _actor(item["decidedBy"]),
                "editedBy": _actor(item.get("editedBy")),
            }
            for item in review.items
        ],
    }


def _actor(by: Actor | str | None) -> dict[str, Any] | None:
    """The user and the credential or rule, without the name. An earlier version stored only the
    user."""
    if by is None:
        return None
    stored: Mapping[str, object] = {"userId": by} if isinstance(by, str) else by
    return {name: stored.get(name) for name in ("userId", "via", "keyId", "ruleId")}


def call(step: Step) -> dict[str, Any]:
    item = {
        "id": step.item_id,
        "kind": step.kind,
        "name": step.name,
        "server": step.sealed_server_id,
        "state": step.state,
        "outcome": step.outcome,
        # Whether it was copied from an earlier run, and this one has not finished it itself.
        "copied": step.copied,
        "arguments": None if step.kind != "tool" else _content(step.sealed_arguments),
        "approved": step.approved_digest,
        "result": _content(step.result) if step.result is not None else None,
        "child": to_wire("task", step.child_task_id) if step.child_task_id else None,
        "costMicros": step.cost_micros,
        "startedAt": _time(step.started_at),
        "finishedAt": _time(step.finished_at),
    }
    return _hashed(item)


def _content(value: Any) -> str:
    return digest(canonical_json(value))


def _movement(movement: Movement) -> dict[str, Any]:
    return {
        "id": to_wire("txn", movement.id),
        "kind": movement.kind,
        "at": clock.to_wire(movement.at),
        "run": movement.run,
        "step": movement.step,
        "model": movement.model,
        "priceVersion": movement.price_version,
        **{name: getattr(movement, name) for name in _AMOUNTS},
    }


def _entry(entry: Stored, previous: bytes) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "at": clock.to_wire(entry.at),
        "actor": entry.actor,
        "user": to_wire("user", entry.user_id) if entry.user_id else None,
        "via": entry.via,
        "action": entry.action,
        "commitment": entry.commitment.hex(),
        "previous": previous.hex(),
        "hash": entry.hash.hex(),
    }


@dataclass(frozen=True, slots=True)
class _Checked:
    """An audit entry of a receipt, with what its hash covers."""

    account_id: UUID
    at: datetime
    actor: str
    user_id: UUID | None
    via: str | None
    action: str
    resource: str
    commitment: bytes


def check(
    signed: str, keys: Sequence[Mapping[str, Any]], shown: object = None
) -> tuple[dict[str, Any], list[str]]:
    """The document, and what is wrong with it. Raises `NotSigned` if its signature is not valid.

    `shown` is the readable copy beside the signature.
    """
    document = verified(signed, KIND, keys)
    if document.get("version") != VERSION:
        raise NotSigned(f"Its version is {document.get('version')}; this program knows {VERSION}.")
    problems = []
    if shown is not None and shown != document:
        problems.append("The readable part differs from the signed one. Use the signed one only.")
    for part in ("decisions", "calls", "ledger"):
        for item in document[part]:
            content = {name: value for name, value in item.items() if name != "hash"}
            if digest(canonical_json(content)) != item["hash"]:
                label = item.get("id", item.get("number"))
                problems.append(f"{part}: the hash of {label} does not match.")
    if sum(each["spent"] for each in document["ledger"]) != document["spentMicros"]:
        problems.append("ledger: the amounts do not add up to spentMicros.")
    problems += [
        f"ledger: the amounts of {each['id']} do not sum to zero."
        for each in document["ledger"]
        if sum(each[name] for name in _AMOUNTS) != 0
    ]
    return document, problems + _audit_problems(document)


def _audit_problems(document: dict[str, Any]) -> list[str]:
    problems: list[str] = []
    account_id = from_wire("acct", document["account"])
    assert account_id is not None
    before: dict[str, Any] | None = None
    for each in document["audit"]:
        entry = _Checked(
            account_id=account_id,
            at=datetime.fromisoformat(each["at"]),
            actor=each["actor"],
            user_id=from_wire("user", each["user"]) if each["user"] else None,
            via=each["via"],
            action=each["action"],
            resource=document["task"],
            commitment=bytes.fromhex(each["commitment"]),
        )
        place, previous = each["sequence"], bytes.fromhex(each["previous"])
        if linked(previous, place, digest_of(entry)).hex() != each["hash"]:
            problems.append(f"audit: the hash of entry {place} does not match.")
        if before is not None and place <= before["sequence"]:
            problems.append(f"audit: entry {place} is not in order.")
        follows = before is not None and place == before["sequence"] + 1
        if before is not None and follows and each["previous"] != before["hash"]:
            problems.append(f"audit: entry {place} does not follow the one before it.")
        before = each
    head = document["head"]
    if before is not None and (
        before["sequence"] > head["sequence"]
        or (before["sequence"] == head["sequence"] and before["hash"] != head["hash"])
    ):
        problems.append("audit: the head does not belong to these entries.")
    return problems
