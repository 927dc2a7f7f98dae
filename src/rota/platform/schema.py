"""Checks values against a JSON Schema that a stranger wrote.

The schema may be made to harm: to have something fetched, to keep a pattern
searching for years, or to refer to itself without end. So nothing is fetched,
patterns are not searched for (whoever wrote the schema checks them as well),
and the work is counted.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_PROBLEMS = 20
MAX_STEPS = 10_000
# Above this, comparing every item with every other takes too long.
MAX_UNIQUE_ITEMS = 1_000

_steps_left: ContextVar[list[int]] = ContextVar("steps_left")


class _TooMuchWork(Exception):
    pass


def _counted(check: Any) -> Any:
    def count(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        left = _steps_left.get()
        left[0] -= 1
        if left[0] < 0:
            raise _TooMuchWork
        return check(validator, value, instance, schema)

    return count


def _skipped(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _unique(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    if isinstance(instance, list) and len(instance) > MAX_UNIQUE_ITEMS:
        return iter(())
    return Draft202012Validator.VALIDATORS["uniqueItems"](validator, value, instance, schema)


def _additional(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    # Which properties are additional is a question of patterns where there are some.
    if isinstance(schema, dict) and schema.get("patternProperties"):
        return iter(())
    return Draft202012Validator.VALIDATORS["additionalProperties"](
        validator, value, instance, schema
    )


_extend: Any = extend
_Careful: Any = _extend(
    Draft202012Validator,
    {
        **{name: _counted(check) for name, check in Draft202012Validator.VALIDATORS.items()},
        "pattern": _skipped,
        "patternProperties": _skipped,
        "additionalProperties": _counted(_additional),
        "uniqueItems": _counted(_unique),
    },
)


@lru_cache(maxsize=1_000)
def _validator(raw: bytes) -> Any:
    # Whether a schema is one takes longer to find out than whether a value fits it.
    schema = orjson.loads(raw)
    _Careful.check_schema(schema)
    return _Careful(schema, registry=Registry())


def problems(schema: Any, value: Any) -> list[str]:
    """What is wrong with a value, at most twenty things."""
    token = _steps_left.set([MAX_STEPS])
    try:
        validator = _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))
        return [_words(error) for error in islice(validator.iter_errors(value), MAX_PROBLEMS)]
    except (SchemaError, Unresolvable) as error:
        return [f"the tool's own schema cannot be used: {str(error)[:200]}"]
    except (RecursionError, _TooMuchWork):
        return ["the tool's own schema cannot be used: checking against it never ends"]
    finally:
        _steps_left.reset(token)


def _words(error: Any) -> str:
    where = "/".join(str(part)[:80] for part in error.absolute_path)
    return f"{where[:200]}: {error.message[:500]}" if where else error.message[:500]
