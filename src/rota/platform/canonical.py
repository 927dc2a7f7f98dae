"""Canonical JSON and digests: equal values have equal text, so they can be compared by hash.

Keys are sorted by code point. Text is UTF-8, without white space between values and without
escapes that JSON does not require, and integers of any size are exact.
"""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(text: str) -> str:
    """The SHA-256 of the text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
