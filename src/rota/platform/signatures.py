"""Signed documents: JSON web signatures with Ed25519, over the exact bytes of the document.

The public keys are published, also those that no longer sign, so that a document can be checked
years later and without the service.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rota.platform import json

ALGORITHM = "Ed25519"


class NotSigned(Exception):
    """The document is not one that a known key has signed. The message says why."""


class Signer:
    """Signs with one key. The older ones, each as `x` of its JSON web key, are only published."""

    def __init__(self, seed: bytes, old: Sequence[str] = ()) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public = self._key.public_key().public_bytes_raw()
        self._kid = kid_of(public)
        self._published = [_jwk(key) for key in dict.fromkeys((public, *map(_decode, old)))]

    def sign(self, kind: str, document: Mapping[str, Any]) -> str:
        """The document with its signature. `kind` keeps one from passing for another."""
        header = {"alg": ALGORITHM, "kid": self._kid, "typ": kind}
        signed = f"{_encode(json.dumps(header))}.{_encode(json.dumps(document))}"
        return f"{signed}.{_encode(self._key.sign(signed.encode()))}"

    def public_keys(self) -> list[dict[str, str]]:
        """The keys as JSON web keys, the one that signs first."""
        return self._published


def is_public_key(x: str) -> bool:
    try:
        return len(_decode(x)) == 32
    except NotSigned:
        return False


def kid_of(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:16]


def _jwk(public: bytes) -> dict[str, str]:
    return {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": _encode(public),
        "kid": kid_of(public),
        "use": "sig",
        "alg": ALGORITHM,
    }


def verified(text: str, kind: str, keys: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The signed document. Raises if it has another kind or no valid signature of these keys."""
    parts = text.strip().split(".")
    if len(parts) != 3:
        raise NotSigned("It is not a signed document.")
    header = _object(parts[0])
    if header.get("alg") != ALGORITHM or header.get("typ") != kind or "crit" in header:
        raise NotSigned(f"It is not a signed document of the kind {kind}.")
    key = next((each for each in keys if each.get("kid") == header.get("kid")), None)
    if key is None:
        raise NotSigned(f"The key {header.get('kid')} that signed it is not among the known keys.")
    public = Ed25519PublicKey.from_public_bytes(_decode(str(key["x"])))
    try:
        public.verify(_decode(parts[2]), f"{parts[0]}.{parts[1]}".encode())
    except InvalidSignature:
        raise NotSigned("The signature is not valid: the document was changed.") from None
    return _object(parts[1])


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise NotSigned("It is not a signed document.") from None


def _object(part: str) -> dict[str, Any]:
    try:
        found = json.exact(_decode(part))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NotSigned("It is not a signed document.")
    return found
