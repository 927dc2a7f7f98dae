"""Encryption of stored secrets: AES-256-GCM with a separate data key for every value.

The service key wraps the data key. Both layers are bound to a context (account, row and column), so
a ciphertext that is copied to another place cannot be opened. A sealed value names the service key
that wraps it. During a key rotation, old keys still open their values, and only the data key has to
be wrapped again.
"""

import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# The first format did not name its key. Values in it can be opened until they are rewrapped.
_WITHOUT_KEY_NAME = b"\x01"
_VERSION = b"\x02"
_KEY_NAME = 8
_NONCE = 12
_WRAPPED = 32 + 16


class SealBroken(Exception):
    """A sealed value was changed or moved, or its key is not configured."""


def key_name(key: bytes) -> bytes:
    return hashlib.sha256(b"rota service key" + key).digest()[:_KEY_NAME]


class Vault:
    """Seals with the first key and opens with any of them."""

    def __init__(self, key: bytes, *old: bytes) -> None:
        self._name = key_name(key)
        self._wrappers = {key_name(each): AESGCM(each) for each in (key, *old)}

    def seal(self, plaintext: bytes, context: str) -> bytes:
        data_key = AESGCM.generate_key(256)
        nonce = os.urandom(_NONCE)
        body = nonce + AESGCM(data_key).encrypt(nonce, plaintext, _bound(_VERSION, context))
        return self._wrap(data_key, context) + body

    def open(self, sealed: bytes, context: str) -> bytes:
        version, data_key, body = self._unwrap(sealed, context)
        try:
            return AESGCM(data_key).decrypt(body[:_NONCE], body[_NONCE:], _bound(version, context))
        except (InvalidTag, ValueError):
            raise SealBroken(f"cannot open the sealed value of {context}") from None

    def is_current(self, sealed: bytes) -> bool:
        return sealed.startswith(self.current)

    @property
    def current(self) -> bytes:
        """The first bytes of every value that the current key wraps."""
        return _VERSION + self._name

    def rewrap(self, sealed: bytes, context: str) -> bytes:
        """The same value, wrapped by the current key. The encrypted content does not change."""
        version, data_key, body = self._unwrap(sealed, context)
        if version == _WITHOUT_KEY_NAME:
            return self.seal(self.open(sealed, context), context)
        return self._wrap(data_key, context) + body

    def _wrap(self, data_key: bytes, context: str) -> bytes:
        nonce = os.urandom(_NONCE)
        bound = _bound(self.current, context)
        wrapped = self._wrappers[self._name].encrypt(nonce, data_key, bound)
        return self.current + nonce + wrapped

    def _unwrap(self, sealed: bytes, context: str) -> tuple[bytes, bytes, bytes]:
        version = sealed[:1]
        named = version == _VERSION
        at = 1 + _KEY_NAME if named else 1
        nonce = sealed[at : at + _NONCE]
        wrapped = sealed[at + _NONCE : at + _NONCE + _WRAPPED]
        body = sealed[at + _NONCE + _WRAPPED :]
        if version not in (_VERSION, _WITHOUT_KEY_NAME) or len(body) < _NONCE:
            raise SealBroken("not a sealed value")
        name = sealed[1:at]
        wrappers = [self._wrappers.get(name)] if named else list(self._wrappers.values())
        for wrapper in wrappers:
            try:
                if wrapper is not None:
                    bound = _bound(sealed[:at], context)
                    return version, wrapper.decrypt(nonce, wrapped, bound), body
            except InvalidTag:
                continue
        raise SealBroken(f"cannot open the sealed value of {context}")


def _bound(head: bytes, context: str) -> bytes:
    return head + context.encode()
