"""Which cell a request goes to, from what it carries. Nothing is verified here: the cell does that,
and refuses what names another one."""

import re
from collections.abc import Collection
from urllib.parse import unquote

from starlette.types import Scope

from rota.auth import compact, secrets
from rota.auth.compact import BadToken
from rota.auth.cookies import LOCAL_NAME, SECURE_NAME
from rota.auth.tokens import TYPE as SESSION_TYPE
from rota.cells.placement import Identity
from rota.limits.guard import is_below, is_page
from rota.platform.cell import NAME, is_name
from rota.platform.errors import NotFound, Unavailable

SIGN_INS = ("/api/auth/session", "/api/auth/code")
# Paths for which the sender says which cell it means: /cells/eu1/webhooks/stripe.
# The target goes to the cell as it is, so it has only plain characters.
_NAMED = re.compile(rf"/cells/({NAME})(/(?:webhooks|health|\.well-known)/[A-Za-z0-9._~%/-]+)")
# Where an access token of an identity provider is a credential.
PROGRAMS = ("/mcp", "/a2a")
_PUBLIC = ("/unsubscribe", "/openapi.json", "/docs", "/api/auth/config")
_UNSUBSCRIBE = re.compile(rf"/api/unsubscribe/({NAME})\.")


class UnknownCell(Unavailable):
    """The credential is wrong, or another router knows a newer cell. Not an authentication error: a
    client that signed in again because of one could get a second account."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The credential names the cell {name}, which this router does not know. If the cell "
            "was added a moment ago, try again. Otherwise, check the credential.",
            headers={"Retry-After": "10"},
        )


class CellNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"This service has no cell {name}. Check the cell in the path.")


class Destinations:
    """`default` is the cell of what names none: it was issued before the cells had names."""

    def __init__(self, cells: Collection[str], default: str) -> None:
        self._cells = frozenset(cells)
        self._default = default

    def of(self, scope: Scope) -> str | Identity | None:
        """A cell, an identity whose cell is not known, or None: any cell can answer."""
        path: str = scope["path"]
        if is_page(path) or path in _PUBLIC:
            # Whoever asks: the files of a page must come from the cell that the page came from.
            return None
        authorization = cookie = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"cookie":
                cookie = value if cookie is None else cookie + b";" + value
        if authorization is not None:
            scheme, _, token = authorization.decode("latin-1").partition(" ")
            found = self._of_token(token) if scheme.lower() == "bearer" else None
            # Elsewhere no cell looks an identity up, so any cell can refuse the token.
            return found if isinstance(found, str) or is_below(path, PROGRAMS) else None
        if match := _UNSUBSCRIBE.match(path):
            return self._known(match[1], CellNotFound)
        if path.startswith("/api/unsubscribe/"):
            return self._default
        if cookie is None:
            return None
        sent = cookies(cookie)
        # Only session tokens are in cookies.
        found = self._of_token(sent.get(SECURE_NAME) or sent.get(LOCAL_NAME) or "")
        return found if isinstance(found, str) else None

    def named(self, path: str) -> tuple[str, str] | None:
        """The cell that a path names, and the path there."""
        match = _NAMED.fullmatch(path)
        if match is None or ".." in unquote(match[2]).split("/"):
            return None
        return self._known(match[1], CellNotFound), match[2]

    def _of_token(self, token: str) -> str | Identity | None:
        if token.startswith(secrets.PREFIX):
            return self._known(secrets.cell_of(token) or self._default, UnknownCell)
        try:
            parsed = compact.parse(token)
            if parsed.header.get("typ") != SESSION_TYPE:
                return Identity(parsed.text_claim("iss"), parsed.text_claim("sub"))
        except BadToken:
            return None
        named = parsed.claims.get("cell")
        if isinstance(named, str) and not is_name(named):
            return None
        return self._known(named if isinstance(named, str) else self._default, UnknownCell)

    def _known(self, name: str, error: type[UnknownCell | CellNotFound]) -> str:
        if name not in self._cells:
            raise error(name)
        return name


def identity_of(id_token: object) -> Identity | None:
    if not isinstance(id_token, str):
        return None
    try:
        parsed = compact.parse(id_token)
        return Identity(parsed.text_claim("iss"), parsed.text_claim("sub"))
    except BadToken:
        return None


def cookies(header: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in header.decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        # As the cells do, which use the first of several with the same name.
        found.setdefault(name, value)
    return found
