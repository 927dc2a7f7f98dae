"""Idempotency keys for requests to the payment processor."""

import hashlib
from uuid import uuid4


def intent(key: str | None, *request: object) -> str:
    """A key from the client's key and the request. Without a client's key, each one is new."""
    if key is None:
        return uuid4().hex
    return hashlib.sha256(f"{request}\n{key}".encode()).hexdigest()
