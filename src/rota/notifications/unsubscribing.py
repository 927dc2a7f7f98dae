"""The links with which an email can be turned off without signing in.

A link names the account, the user and the kind, and is signed. It can do nothing but turn off
emails of that kind, so it does not expire: old emails must work, too.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from rota.notifications.model import KINDS, Kind
from rota.platform import cell

_SIGNATURE = 16
_IDS = 32


@dataclass(frozen=True, slots=True)
class Subscription:
    """The emails of one kind to one user about one account."""

    account_id: UUID
    user_id: UUID
    kind: Kind


class UnsubscribeTokens:
    """Signs with a key that is derived from the first secret key, and accepts all of them."""

    def __init__(self, secret_keys: Sequence[bytes], cell: str | None = None) -> None:
        self._cell = cell
        self._keys = [hashlib.sha256(b"rota unsubscribe" + key).digest() for key in secret_keys]

    def sign(self, subscription: Subscription) -> str:
        ids = subscription.account_id.bytes + subscription.user_id.bytes
        body = ids + subscription.kind.encode()
        text = base64.urlsafe_b64encode(_signature(self._keys[0], body) + body).decode().rstrip("=")
        return text if self._cell is None else f"{self._cell}.{text}"

    def read(self, token: str) -> Subscription | None:
        """None if the token is not one of ours."""
        named, dot, rest = token.partition(".")
        if dot and self._cell is not None:
            cell.check("The link", named, self._cell)
            token = rest
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not any(hmac.compare_digest(signature, _signature(key, body)) for key in self._keys):
            return None
        name = body[_IDS:].decode()
        kind = next((each for each in KINDS if each == name), None)
        if kind is None:
            return None  # A later version signed it.
        return Subscription(UUID(bytes=body[:16]), UUID(bytes=body[16:_IDS]), kind)


def _signature(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:_SIGNATURE]
