"""Validates values against a JSON Schema from an untrusted source.

A hostile schema could fetch URLs, use patterns that take years to match, or refer to itself
forever. So references are not fetched, patterns are not executed (the tool server checks them)
and the number of validation steps is limited.
"""

import re
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from rota.platform import json

MAX_PROBLEMS = 20
MAX_STEPS = 10_000
# For longer lists, comparing every item with every other item takes too long.
MAX_UNIQUE_ITEMS = 1_000

_steps_left: ContextVar[list[int]] = ContextVar("steps_left")


class _StepLimitExceeded(Exception):
    pass


def _count_steps(check: Any) -> Any:
    def count(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        left = _steps_left.get()
        left[0] -= 1
        if left[0] < 0:
            raise _StepLimitExceeded
        return check(validator, value, instance, schema)

    return count


def _skip(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _unique(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    if isinstance(instance, list) and len(instance) > MAX_UNIQUE_ITEMS:
        return iter(())
    return Draft202012Validator.VALIDATORS["uniqueItems"](validator, value, instance, schema)


def _additional(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    # With patternProperties, only the patterns tell which properties are additional.
    if isinstance(schema, dict) and schema.get("patternProperties"):
        return iter(())
    return Draft202012Validator.VALIDATORS["additionalProperties"](
        validator, value, instance, schema
    )


_extend: Any = extend
_Validator: Any = _extend(
    Draft202012Validator,
    {
        **{name: _count_steps(check) for name, check in Draft202012Validator.VALIDATORS.items()},
        "pattern": _skip,
        "patternProperties": _skip,
        "additionalProperties": _count_steps(_additional),
        "uniqueItems": _count_steps(_unique),
    },
)


@lru_cache(maxsize=1_000)
def _validator(raw: bytes) -> Any:
    # Cached, because checking a schema takes longer than validating a value.
    schema = json.exact(raw)
    _Validator.check_schema(schema)
    return _Validator(schema, registry=Registry())


def problems(schema: Any, value: Any) -> list[str]:
    """The problems of a value, at most MAX_PROBLEMS."""
    token = _steps_left.set([MAX_STEPS])
    try:
        validator = _validator(json.dumps(schema, sort_keys=True))
        return [_describe(error) for error in islice(validator.iter_errors(value), MAX_PROBLEMS)]
    except (SchemaError, Unresolvable) as error:
        return [f"the tool's schema cannot be used: {str(error)[:200]}"]
    except (ArithmeticError, LookupError, TypeError, ValueError, re.error) as error:
        # A schema comes from a tool server, and can make the library fail in many ways.
        return [f"the tool's schema cannot be used: {str(error)[:200]}"]
    except (RecursionError, _StepLimitExceeded):
        return ["the tool's schema cannot be used: validation takes too many steps"]
    finally:
        _steps_left.reset(token)


def _describe(error: Any) -> str:
    where = "/".join(str(part)[:80] for part in error.absolute_path)
    return f"{where[:200]}: {error.message[:500]}" if where else error.message[:500]
