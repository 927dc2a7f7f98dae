"""A strict parser for compact JSON web tokens.

It rejects what libraries tolerate (padding, duplicate names, unusual encodings) before a key is
selected. joserfc then verifies the signature.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import Key

from rota.platform import json

MAX_TOKEN_CHARACTERS = 8192
# Above this, floating-point numbers and their differences are not exact.
_MAX_TIME = 2**53
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class BadToken(Exception):
    """The token is not valid. The reason is for logs and tests and is not sent to the client."""


@dataclass(frozen=True, slots=True)
class Compact:
    """A parsed token. Its content is not trusted before `verify`."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]

    @property
    def signing_input(self) -> str:
        # A signature can have several encodings. The signed text has only one.
        return self.text.rpartition(".")[0]

    def text_claim(self, name: str) -> str:
        value = self.claims.get(name)
        if not isinstance(value, str) or not value:
            raise BadToken(f"claim {name} is missing or not a string")
        return value

    def time_claim(self, name: str) -> float:
        value = self.claims.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _MAX_TIME:
            raise BadToken(f"claim {name} is missing or not a time")
        return value


def sign(header: dict[str, Any], claims: dict[str, Any], key: Key) -> str:
    return jws.serialize_compact(header, orjson.dumps(claims), key, algorithms=[header["alg"]])


def parse(text: str) -> Compact:
    if len(text) > MAX_TOKEN_CHARACTERS or not _COMPACT.fullmatch(text):
        raise BadToken("not a compact token")
    header, claims, _ = (_decode(part) for part in text.split("."))
    return Compact(text, _object(header), _object(claims))


def verify(token: Compact, key: Key, algorithms: Sequence[str]) -> None:
    if "crit" in token.header or "b64" in token.header:
        raise BadToken("header requires extensions")
    if token.header.get("alg") not in algorithms:
        raise BadToken("algorithm not allowed")
    try:
        # Unknown header members must be ignored (RFC 7515, section 4).
        registry = jws.JWSRegistry(algorithms=list(algorithms), strict_check_header=False)
        jws.deserialize_compact(token.text, key, registry=registry)
    except (JoseError, ValueError, TypeError) as error:
        raise BadToken(f"signature: {error}") from None


def _decode(part: str) -> bytes:
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise BadToken("not base64url") from None
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise BadToken("not canonical base64url")
    return raw


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except json.InvalidJson as error:
        raise BadToken(str(error)) from None
    if not isinstance(value, dict):
        raise BadToken("not an object")
    return value
