"""What is wrong with a value, in the words of the API instead of those of the library."""

from collections.abc import Callable, Mapping
from typing import Any

_FIXED = {
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "is too large",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "string_pattern_mismatch": "has the wrong format",
    "date_type": "must be a date such as 2026-11-30",
    "date_parsing": "must be a date such as 2026-11-30",
    "date_from_datetime_parsing": "must be a date such as 2026-11-30",
}
_WITH_LIMIT: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "string_too_short": lambda limit: f"must have at least {_count(limit['min_length'])}",
    "string_too_long": lambda limit: f"must have at most {_count(limit['max_length'])}",
    "too_short": lambda limit: f"must have at least {_count(limit['min_length'], 'item')}",
    "too_long": lambda limit: f"must have at most {_count(limit['max_length'], 'item')}",
    "greater_than": lambda limit: f"must be greater than {limit['gt']}",
    "greater_than_equal": lambda limit: f"must be at least {limit['ge']}",
    "less_than": lambda limit: f"must be less than {limit['lt']}",
    "less_than_equal": lambda limit: f"must be at most {limit['le']}",
    "literal_error": lambda limit: f"must be {limit['expected']}",
    "enum": lambda limit: f"must be {limit['expected']}",
}


def problem(error: Mapping[str, Any]) -> str:
    """The message for one error of Pydantic."""
    kind, message, limits = error["type"], str(error["msg"]), error.get("ctx") or {}
    if "text" in limits:
        # The message was replaced before.
        return message
    if kind in _FIXED:
        return _FIXED[kind]
    # Pydantic calls characters "items" where it checks the length after a function of ours.
    if kind in ("too_short", "too_long") and isinstance(error["input"], str):
        kind = f"string_{kind}"
    if (words := _WITH_LIMIT.get(kind)) is not None:
        return words(limits)
    return message.removeprefix("Value error, ")


def _count(number: int, noun: str = "character") -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
