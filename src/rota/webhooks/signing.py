"""Signs webhooks as Standard Webhooks says: `v1` with the webhook's secret, and `v1a` with the keys
of the service, which anyone can verify with the published keys.

While a secret or a key is rotated, both the old and the new one sign.
"""

import base64
import hmac
import secrets
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SECRET_PREFIX, PUBLIC_PREFIX = "whsec_", "whpk_"
SECRET_BYTES = 24


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def derived_key(secret_key: bytes) -> bytes:
    """The key that signs if no other is configured."""
    return HKDF(SHA256(), 32, salt=None, info=b"rota webhook signatures").derive(secret_key)


class Signer:
    """Signs with every key, so that a receiver that knows one of them can verify."""

    def __init__(self, seeds: Sequence[bytes]) -> None:
        self._keys = [Ed25519PrivateKey.from_private_bytes(each) for each in seeds]

    @property
    def public_keys(self) -> list[bytes]:
        """The newest first."""
        return [key.public_key().public_bytes_raw() for key in self._keys]

    def headers(
        self, message_id: str, timestamp: int, body: bytes, shared: Sequence[str]
    ) -> dict[str, str]:
        """The headers of a delivery. `shared` are the webhook's secrets, the newest first."""
        signed = f"{message_id}.{timestamp}.".encode() + body
        signatures = [
            ("v1", hmac.digest(_key_of(secret), signed, "sha256")) for secret in shared
        ] + [("v1a", key.sign(signed)) for key in self._keys]
        return {
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(
                f"{version},{base64.b64encode(value).decode()}" for version, value in signatures
            ),
        }


def public_text(public: bytes) -> str:
    """A public key as the SDKs accept it."""
    return PUBLIC_PREFIX + base64.b64encode(public).decode()


def _key_of(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX))
