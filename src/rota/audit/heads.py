"""Signed heads: what an auditor keeps, to find out later whether the trail up to it has changed."""

from datetime import datetime
from typing import Any
from uuid import UUID

from rota.audit.queries import Head
from rota.platform import clock
from rota.platform.ids import from_wire, to_wire
from rota.platform.signatures import NotSigned, Signer, verified

KIND = "rota-audit-head"


def sign(signer: Signer, issuer: str, head: Head, now: datetime, kind: str = KIND) -> str:
    return signer.sign(
        kind,
        {
            "issuer": issuer,
            "account": to_wire("acct", head.account_id),
            "sequence": head.sequence,
            "hash": head.hash.hex(),
            "at": clock.to_wire(now),
        },
    )


def read(text: str, keys: list[dict[str, Any]], kind: str = KIND) -> tuple[UUID, int, bytes]:
    """The account, the place and the hash of a head. Raises `NotSigned`."""
    found = verified(text, kind, keys)
    account_id = from_wire("acct", str(found.get("account")))
    try:
        place, digest = int(found["sequence"]), bytes.fromhex(found["hash"])
    except (KeyError, TypeError, ValueError):
        raise NotSigned("It does not name a place in an audit trail.") from None
    if account_id is None:
        raise NotSigned("It does not name a place in an audit trail.")
    return account_id, place, digest
