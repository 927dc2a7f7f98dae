"""Creates and checks the secrets of API keys.

A secret is `rota_`, 32 characters in base 62, and a CRC32 of them in 6 more. With the checksum, the
service rejects mistyped and invented keys without a database query, and scanners can recognise
leaked keys. Only the SHA-256 hash is stored.

A deployment that is a cell puts its name between: `rota_eu1_` and the rest.
"""

import hashlib
import secrets
import string
import zlib

from rota.platform import cell

PREFIX = "rota_"
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 32
_CHECKSUM = 6
_BODY = _RANDOM + _CHECKSUM
_LENGTH = len(PREFIX) + _BODY
_VISIBLE = 6


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    digits = []
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def new_secret(own_cell: str | None = None) -> str:
    start = PREFIX if own_cell is None else f"{PREFIX}{own_cell}_"
    body = start + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return body + _checksum(body)


def cell_of(secret: str) -> str | None:
    """The cell that a key names. None for a key without a name, and for what is not a key."""
    if len(secret) == _LENGTH:
        return None
    named = secret[len(PREFIX) : -_BODY - 1]
    return named if secret[-_BODY - 1 : -_BODY] == "_" and cell.is_name(named) else None


def is_well_formed(secret: str) -> bool:
    named = cell_of(secret)
    return (
        len(secret) == (_LENGTH if named is None else _LENGTH + len(named) + 1)
        and secret.startswith(PREFIX)
        # The ASCII letters and digits are exactly the alphabet of base 62.
        and secret.isascii()
        and secret[-_BODY:].isalnum()
        and secret[-_CHECKSUM:] == _checksum(secret[:-_CHECKSUM])
    )


def hash_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def visible_prefix(secret: str) -> str:
    return secret[: _VISIBLE - _BODY]
