"""Encryption of what Temporal stores: arguments, results and the messages of failures.

AES-256-GCM. A payload names its key, so a key can be replaced while runs are open. Payloads that
were stored before encryption was turned on stay readable.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
)

from rota.platform.crypto import key_name

_ENCODING = b"binary/encrypted"
_NONCE = 12


class UnreadablePayload(Exception):
    """A payload was changed, or its key is not configured."""


class EncryptingCodec(PayloadCodec):
    """Encrypts with the first key, unless it is None, and decrypts with any of them."""

    def __init__(self, keys: Sequence[bytes | None]) -> None:
        self._name = key_name(keys[0]).hex().encode() if keys[0] else None
        self._ciphers = {key_name(key).hex().encode(): AESGCM(key) for key in keys if key}

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        if self._name is None:
            return list(payloads)
        return [self._encrypt(self._name, payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._decrypt(payload) for payload in payloads]

    def _encrypt(self, name: bytes, payload: Payload) -> Payload:
        nonce = os.urandom(_NONCE)
        data = self._ciphers[name].encrypt(nonce, payload.SerializeToString(), name)
        metadata = {"encoding": _ENCODING, "encryption-key-id": name}
        return Payload(metadata=metadata, data=nonce + data)

    def _decrypt(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != _ENCODING:
            return payload
        name = payload.metadata["encryption-key-id"]
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise UnreadablePayload(
                f"The key {name.decode()} of a Temporal payload is not configured. Add it to "
                "ROTA_TEMPORAL_CODEC_KEYS_OLD."
            )
        try:
            opened = cipher.decrypt(payload.data[:_NONCE], payload.data[_NONCE:], name)
        except (InvalidTag, ValueError):
            raise UnreadablePayload("A Temporal payload was changed after encryption.") from None
        return Payload.FromString(opened)


def encrypting_converter(keys: Sequence[bytes | None]) -> DataConverter:
    """Temporal's own converter if there are no keys."""
    if not any(keys):
        return DataConverter.default
    return replace(
        DataConverter.default,
        payload_codec=EncryptingCodec(keys),
        # Otherwise Temporal could read the messages of errors.
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
