"""Where the accounts of identities are looked for, and where new ones go.

Every router computes the same order of cells for an identity (rendezvous hashing), without a
table. The order only says where to ask first, and which cell a new account goes to. Each cell knows
its own accounts, so a cell that is added later moves nobody.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A person at an identity provider, as a token names them. The token is not verified here."""

    issuer: str
    subject: str


def in_order(identity: Identity, cells: Iterable[str]) -> list[str]:
    """The cells, the one that a new account goes to first."""

    def score(cell: str) -> bytes:
        text = f"{cell}\0{identity.issuer}\0{identity.subject}"
        return hashlib.sha256(text.encode()).digest()

    return sorted(cells, key=score, reverse=True)
