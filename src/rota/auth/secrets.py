"""Creates and checks the secrets of API keys.

A secret is `rota_`, 32 characters in base 62, and a CRC32 of them in 6 more. With the checksum, the
service rejects mistyped and invented keys without a database query, and scanners can recognise
leaked keys. Only the SHA-256 hash is stored.
"""

import hashlib
import secrets
import string
import zlib

PREFIX = "rota_"
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 32
_CHECKSUM = 6
_LENGTH = len(PREFIX) + _RANDOM + _CHECKSUM
_VISIBLE = len(PREFIX) + 6


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    digits = []
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def new_secret() -> str:
    body = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return body + _checksum(body)


def is_well_formed(secret: str) -> bool:
    return (
        len(secret) == _LENGTH
        and secret.startswith(PREFIX)
        # The ASCII letters and digits are exactly the alphabet of base 62.
        and secret.isascii()
        and secret[len(PREFIX) :].isalnum()
        and secret[-_CHECKSUM:] == _checksum(secret[:-_CHECKSUM])
    )


def hash_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def visible_prefix(secret: str) -> str:
    return secret[:_VISIBLE]
