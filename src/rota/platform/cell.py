"""The name of a cell in what it issues: API keys, session tokens and links.

Accounts can be spread over several complete deployments, the cells. A credential names the cell
that issued it, so a router can send it there without a look-up, and every other cell refuses it. A
deployment without a name issues credentials without one.
"""

import re
from dataclasses import dataclass

from rota.platform.errors import ApiError, FieldError, ValidationFailed

# Short, and without the characters that separate the parts of keys, links and lists.
NAME = "[a-z][a-z0-9]{0,15}"
# What the router asks of a cell, in a header that it removes from the requests of clients. The
# names of all cells that the router knows may follow: `find eu1,eu2`.
ROUTING_HEADER = "rota-routing"
# Does the identity have an account here? Nothing changes, and the token stays usable.
FIND = "find"
# Sign in, but create no account.
KNOWN_ONLY = "known-only"
# Another cell is about to create the account of the identity.
RESERVE = "reserve"
# No cell has an account of the identity: create it.
CREATE = "create"
_QUESTIONS = (FIND, KNOWN_ONLY, RESERVE, CREATE)

_NAME = re.compile(NAME)


class Misdirected(ApiError):
    """Another cell has what the request is about."""

    status = 421
    code = "MISDIRECTED_REQUEST"


class OfAnotherCell(Misdirected):
    def __init__(self, what: str, named: str, own: str) -> None:
        super().__init__(
            f"{what} belongs to cell {named}, and this is cell {own}. Send the request to the "
            "public address of the service, which finds the cell."
        )


@dataclass(frozen=True, slots=True)
class Routing:
    """What the router asks, and the cells that it knows."""

    question: str
    cells: frozenset[str]

    @classmethod
    def of(cls, header: str | None) -> "Routing | None":
        if header is None:
            return None
        question, _, names = header.partition(" ")
        if question not in _QUESTIONS:
            # To ignore a question of a newer router could create an account.
            raise ValidationFailed.of(FieldError(ROUTING_HEADER, "is not known to this release"))
        return cls(question, frozenset(filter(None, names.split(","))))


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def check(what: str, named: str | None, own: str | None) -> None:
    """Refuses what names another cell. What names none is older than the cell's name."""
    if named is not None and own is not None and named != own:
        raise OfAnotherCell(what, named, own)
