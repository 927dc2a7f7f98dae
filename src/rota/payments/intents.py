"""Names for what somebody wants of the processor, so that asking again makes it once."""

import hashlib
from uuid import uuid4


def intent(key: str | None, *wanted: object) -> str:
    """The processor's key. A caller without one means something new with every request."""
    if key is None:
        return uuid4().hex
    return hashlib.sha256(f"{wanted}\n{key}".encode()).hexdigest()
