"""Secrets at rest: AES-256-GCM with a data key of its own for every value.

The data key is wrapped by the service key. Both layers are bound to a context
(account, row and field), so a ciphertext moved to another place does not open.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_VERSION = b"\x01"
_NONCE = 12
_WRAPPED = 32 + 16


class SealBroken(Exception):
    """A sealed value was altered, moved, or sealed with another key."""


class Vault:
    def __init__(self, key: bytes) -> None:
        self._wrapper = AESGCM(key)

    def seal(self, plaintext: bytes, context: str) -> bytes:
        bound = _VERSION + context.encode()
        data_key = AESGCM.generate_key(256)
        wrap_nonce, nonce = os.urandom(_NONCE), os.urandom(_NONCE)
        return b"".join(
            (
                _VERSION,
                wrap_nonce,
                self._wrapper.encrypt(wrap_nonce, data_key, bound),
                nonce,
                AESGCM(data_key).encrypt(nonce, plaintext, bound),
            )
        )

    def open(self, sealed: bytes, context: str) -> bytes:
        bound = _VERSION + context.encode()
        at = len(_VERSION)
        wrap_nonce = sealed[at : at + _NONCE]
        wrapped = sealed[at + _NONCE : at + _NONCE + _WRAPPED]
        nonce = sealed[at + _NONCE + _WRAPPED : at + 2 * _NONCE + _WRAPPED]
        body = sealed[at + 2 * _NONCE + _WRAPPED :]
        if sealed[:at] != _VERSION or len(nonce) != _NONCE:
            raise SealBroken("not a sealed value")
        try:
            data_key = self._wrapper.decrypt(wrap_nonce, wrapped, bound)
            return AESGCM(data_key).decrypt(nonce, body, bound)
        except InvalidTag:
            raise SealBroken(f"the sealed value for {context} does not open") from None
