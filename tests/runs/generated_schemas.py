"""Random JSON Schemas, objects that match them, and objects that do not."""

import json
import random
from dataclasses import dataclass
from typing import Any

from jsonschema_rs import Draft202012Validator

Schema = dict[str, Any]
WORDS = ("total", "name", "due date", "größe", "items", "a/b", "~x", "nested", "flag", "😀")
JUNK: tuple[Any, ...] = (None, True, -7, 1e300, "", "junk", [], [[1]], {}, {"unknown": 1})


@dataclass(frozen=True, slots=True)
class Case:
    schema: Schema
    fits: Schema
    # Answers that do not match, as a model could write them.
    wrong: list[str]

    def matches(self, value: Any) -> bool:
        return bool(Draft202012Validator(self.schema, validate_formats=True).is_valid(value))


def case(seed: int, *, wrong: int) -> Case:
    """A schema with an object that matches it and this many answers that do not."""
    chance = random.Random(seed)
    while True:
        schema, fits = _object(chance, depth=3)
        if chance.random() < 0.3:
            schema = {**schema, "$defs": {"unused": {"type": "string"}}}
        if chance.random() < 0.2:
            # References, which are not sent to providers.
            schema["properties"]["ref"] = {"$ref": "#/$defs/word"}
            schema["$defs"] = {"word": {"type": "string", "minLength": 2}}
            fits["ref"] = "word"
        made = Case(schema, fits, [])
        assert made.matches(fits), (schema, fits)
        answers = [answer for _ in range(60) if (answer := _spoilt(chance, made)) is not None]
        if len(answers) >= wrong:
            return Case(schema, fits, answers[:wrong])


def _spoilt(chance: random.Random, made: Case) -> str | None:
    kind = chance.randrange(6)
    text = json.dumps(made.fits)
    if kind == 0:
        return text[: chance.randrange(1, len(text))] or None
    if kind == 1:
        return f"Here you are: {text}"
    if kind == 2:
        return f"[{text}]"
    if kind == 3:
        return text[:-1] + f', "{chance.choice(WORDS)}": NaN}}'
    spoilt = json.loads(text)
    spoilt[chance.choice([*spoilt, "surplus"])] = chance.choice(JUNK)
    return None if made.matches(spoilt) else json.dumps(spoilt)


def _object(chance: random.Random, depth: int) -> tuple[Schema, Schema]:
    names = chance.sample(WORDS, chance.randint(1, 4))
    made = {name: _value(chance, depth - 1) for name in names}
    required = [name for name in names if chance.random() < 0.7]
    schema: Schema = {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in made.items()},
        "required": required,
    }
    if chance.random() < 0.7:
        schema["additionalProperties"] = False
    fits = {
        name: value
        for name, (_, value) in made.items()
        if name in required or chance.random() < 0.8
    }
    return schema, fits


def _value(chance: random.Random, depth: int) -> tuple[Schema, Any]:
    kinds = ["integer", "number", "text", "choice", "flag", "pattern", "date", "nullable"]
    kinds += ["object", "list", "either"] if depth > 0 else []
    match chance.choice(kinds):
        case "integer":
            low = chance.randint(-(10**20), 10**20)
            return {"type": "integer", "minimum": low, "maximum": low + 5}, low + 3
        case "number":
            return {"type": "number", "multipleOf": 0.5}, chance.randint(-99, 99) / 2
        case "text":
            size = chance.randint(1, 40)
            return {"type": "string", "minLength": size, "maxLength": size}, "é" * size
        case "choice":
            values = [chance.randint(0, 9), "α\n", None, {"k": [1.5]}]
            return {"enum": values}, chance.choice(values)
        case "flag":
            return {"const": True}, True
        case "pattern":
            return {"type": "string", "pattern": "^[a-c]{3}-[0-9]+$"}, "abc-42"
        case "date":
            return {"type": "string", "format": "date"}, "2026-11-16"
        case "nullable":
            return {"type": ["string", "null"], "description": "May be absent."}, None
        case "object":
            return _object(chance, depth)
        case "list":
            schema, value = _value(chance, depth - 1)
            count = chance.randint(1, 3)
            bounds = {"minItems": count, "maxItems": count}
            return {"type": "array", "items": schema, **bounds}, [value] * count
        case _:
            (one, value), (other, _) = _value(chance, depth - 1), _value(chance, depth - 1)
            return {"anyOf": [one, other]}, value
