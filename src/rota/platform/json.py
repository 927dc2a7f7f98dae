"""A strict JSON parser for untrusted input, and exact JSON for what the service stores.

The strict parser rejects duplicate keys, NaN and Infinity, lone surrogates, NUL, very long numbers,
deep nesting and too many values, so that no other code has to check for them.

Stored JSON keeps integers of any size: models and tool servers use them as identifiers. Python
converts at most 4,300 digits; a longer integer is an error.
"""

import json
import math
import re
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import jiter
import orjson
from pydantic_core import from_json

MAX_DEPTH = 64
# Two million zeros fit in a body and would block the process for a second or more.
MAX_VALUES = 10_000
MAX_NUMBER_CHARACTERS = 400
# Larger input is mostly text, which both decoders read equally fast.
MAX_FAST_BYTES = 128 * 1024


class InvalidJson(ValueError):
    """The text is not JSON that this service accepts. The message says why."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidJson(f"the key {key[:80]!r} appears more than once in an object")
            seen.add(key)
    return result


def _constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number")


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise InvalidJson(f"a number is longer than {MAX_NUMBER_CHARACTERS} characters")
    return int(text)


def _float(text: str) -> float:
    number = float(text) if len(text) <= MAX_NUMBER_CHARACTERS else math.inf
    if math.isinf(number):
        raise InvalidJson("a number is too large")
    return number


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float
)


# Each value except the first follows a comma or an opening bracket. This pattern finds the next
# such character outside strings. It never backtracks, so no input makes it slow.
_BEFORE_VALUE = re.compile(rb'(?:[^",\[{]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:[,\[{]|\Z)', re.DOTALL)


def delimiters(raw: bytes) -> int:
    """At least as many as there are values after the first."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def has_too_many_values(raw: bytes, max_values: int) -> bool:
    if delimiters(raw) <= max_values:
        return False
    # Most of these characters may be inside strings, so count only those outside.
    return next(islice(_BEFORE_VALUE.finditer(raw), max_values, None), None) is not None


# Makes a number with an exponent, which can be too large, and one that is too long easy to find.
_SIMPLER = bytes.maketrans(b"123456789.E", b"0000000000e")
# From 309 digits on, a float is infinite.
_LONG_NUMBER = b"0" * 300


def _needs_care(raw: bytes) -> bool:
    simpler = raw.translate(_SIMPLER)
    return b"\\u" in raw or b"0e" in simpler or _LONG_NUMBER in simpler


def _check_text(text: str) -> None:
    if "\0" in text:
        raise InvalidJson("text contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJson("text contains a lone surrogate") from None


def _walk(root: Any) -> None:
    """Checks depth and strings level by level, without recursion."""
    level, depth = [root], 0
    while level:
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                _check_text(value)
            elif isinstance(value, dict):
                for key in value:
                    _check_text(key)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        level, depth = below, depth + 1
        if depth >= MAX_DEPTH and any(isinstance(value, dict | list) for value in level):
            raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels")


def loads(raw: bytes, max_values: int = MAX_VALUES) -> Any:
    if has_too_many_values(raw, max_values):
        raise InvalidJson(f"it has more than {max_values} values. Send less data at once")
    if len(raw) <= MAX_FAST_BYTES and not _needs_care(raw):
        # The other decoder says what is wrong.
        with suppress(ValueError):
            value = jiter.from_json(raw, allow_inf_nan=False, catch_duplicate_keys=True)
            if not _is_too_deep(value):
                return value
    return _slow_loads(raw)


def _is_too_deep(root: Any) -> bool:
    level = [root]
    for _ in range(MAX_DEPTH):
        filled = [each for each in level if each and type(each) in (dict, list)]
        if not filled:
            return False
        level = list(
            chain.from_iterable(each.values() if type(each) is dict else each for each in filled)
        )
    return any(type(each) in (dict, list) for each in level)


def _slow_loads(raw: bytes) -> Any:
    """Several times slower, for input that needs more checks, and for error messages."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InvalidJson("the text is not UTF-8") from None
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at character {error.pos}") from None
    # The decoders reject raw NULs and surrogates, so only escapes can contain them.
    if "\\u" in text or text.count("[") + text.count("{") > MAX_DEPTH:
        _walk(value)
    return value


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """The value as JSON, with its integers exact. NaN and Infinity become null."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None)
    except TypeError:
        # orjson refuses integers above 64 bits. The result has the same form as orjson's.
        text = json.dumps(
            _finite(value), ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":")
        )
        return text.encode(errors="replace")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def exact(text: str | bytes) -> Any:
    """Reads JSON that the service itself wrote. orjson would read long integers as floats."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        # The fast parser reads at most 200 levels.
        return json.loads(text)
