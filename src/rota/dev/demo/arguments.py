"""Fills the arguments of a tool call, from the tool's JSON Schema and what the model has read."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rota.dev.demo.conversation import Facts, Tool

_QUERIES = {"query", "q", "search", "keywords", "term", "terms"}
_TEXTS = {"message", "body", "text", "comment", "note", "content", "reply", "markdown", "draft"}
_TITLES = {"title", "subject", "name", "summary", "headline"}
_MAX_ITEMS = 5
_SHORT = 300
_STOP = re.compile(
    r"\b(an?|and|are|as|at|be|by|for|from|have|her|his|how|i|in|into|is|it|me|my|of|on|or|our|please|"
    r"so|that|the|their|them|they|this|to|us|we|what|when|where|which|who|with|you|your|after|all|"
    r"answer|check|customers?|draft|find|not|prepare|reply|show|tags?|tickets?|write)\b",
    re.IGNORECASE,
)
# A value that the schema needs and that the model does not know.
UNKNOWN = object()


def fill(tool: Tool, facts: Facts, message: str) -> dict[str, Any] | None:
    """The arguments, or None if the model does not know what the schema requires.

    `message` is what the model writes where the tool wants a text.
    """
    filled = _object(tool.schema, facts, message)
    return filled if isinstance(filled, dict) else None


def correct(
    tool: Tool, arguments: Mapping[str, Any], reason: str
) -> tuple[dict[str, Any], list[str]]:
    """The arguments changed by a person's reason, and the names of the fields that changed."""
    corrected = dict(arguments)
    words = reason.lower()
    for name, schema in (tool.schema.get("properties") or {}).items():
        before = corrected.get(name)
        if choices := schema.get("enum"):
            named = [choice for choice in choices if _says(words, str(choice))]
            corrected[name] = named[0] if named else before
        elif schema.get("type") == "boolean" and _says(words, _spoken(name)):
            corrected[name] = not re.search(r"\b(no|not|without|don't|never)\b", words)
        elif name.lower() in _TEXTS and isinstance(before, str):
            corrected[name] = _rewritten(before, reason, schema)
        if corrected.get(name) is None:
            corrected.pop(name, None)
    changed = [name for name, value in corrected.items() if value != arguments.get(name)]
    return corrected, changed


def keywords(text: str, count: int = 4) -> str:
    """The words of a text that a search can use."""
    words = re.findall(r"[a-z][a-z-]{2,}", _STOP.sub(" ", text).lower())
    return " ".join(list(dict.fromkeys(words))[:count]) or "help"


def _object(schema: Mapping[str, Any], facts: Facts, message: str) -> Any:
    required = set(schema.get("required") or ())
    filled: dict[str, Any] = {}
    for name, inner in (schema.get("properties") or {}).items():
        value = _value(name, inner, facts, message, needed=name in required)
        if value is not UNKNOWN:
            filled[name] = value
        elif name in required:
            return UNKNOWN
    return filled


def _value(
    name: str, schema: Mapping[str, Any], facts: Facts, message: str, *, needed: bool
) -> Any:
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        named = [choice for choice in choices if _says(facts.task.lower(), str(choice))]
        return named[0] if named else schema.get("default", choices[0])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "string")
    if kind == "object":
        return _object(schema, facts, message)
    if kind == "array":
        return _array(name, schema, facts, message)
    if kind == "boolean":
        return bool(schema.get("default", _says(facts.task.lower(), _spoken(name))))
    if kind in ("integer", "number"):
        return _number(name, schema, facts, needed=needed)
    return _string(name, schema, facts, message, needed=needed)


def _array(name: str, schema: Mapping[str, Any], facts: Facts, message: str) -> Any:
    items = schema.get("items") or {}
    most = min(schema.get("maxItems", _MAX_ITEMS), _MAX_ITEMS)
    if items.get("type") == "object":
        wanted = items.get("properties") or {}
        required = set(items.get("required") or ())
        for found in facts.lists():
            rows = [{key: row[key] for key in wanted if key in row} for row in found]
            rows = [row for row in rows if required <= row.keys()]
            if rows:
                return rows[:most]
        return UNKNOWN
    if choices := items.get("enum"):
        named = [choice for choice in choices if _says(_everything(facts), str(choice))]
        return (named or list(choices))[: min(most, 3)]
    return list(schema.get("default") or [keywords(facts.task, 1)])[:most]


def _number(name: str, schema: Mapping[str, Any], facts: Facts, *, needed: bool) -> Any:
    found = next((v for v in facts.of_key(name) if isinstance(v, int | float)), None)
    if found is None:
        found = schema.get("default", schema.get("minimum", 1) if needed else UNKNOWN)
    if found is UNKNOWN:
        return UNKNOWN
    low, high = schema.get("minimum", found), schema.get("maximum", found)
    value = max(low, min(high, found))
    return int(value) if schema.get("type") == "integer" else value


def _string(
    name: str, schema: Mapping[str, Any], facts: Facts, message: str, *, needed: bool
) -> Any:
    plain = name.replace("_", "").lower()
    if pattern := schema.get("pattern"):
        found = facts.matching(pattern)
        return found if found is not None else schema.get("default", UNKNOWN)
    if schema.get("format") in ("date", "date-time"):
        return _date(name, schema, facts)
    if plain in _QUERIES:
        # What the task is about, in the words of the thing that it names.
        about = next((v for v in facts.of_key("subject") if isinstance(v, str)), facts.task)
        return _fitted(keywords(about), schema)
    if plain in _TEXTS:
        # A short field is for a remark, not for the whole message.
        short = schema.get("maxLength", _SHORT) < _SHORT
        return _fitted(facts.task.splitlines()[0].lstrip("# ") if short else message, schema)
    known = next((v for v in facts.of_key(name) if isinstance(v, str) and v), None)
    if known is not None:
        return _fitted(known, schema)
    if schema.get("format") == "email":
        return facts.matching(r"[\w.+-]+@[\w-]+\.[\w.]+") or UNKNOWN
    if plain in _TITLES and needed:
        return _fitted(facts.task.splitlines()[0].lstrip("# "), schema)
    if plain.endswith(("id", "number", "key")):
        return facts.matching(r"[A-Z]{1,5}-\d+|\d{2,}") or UNKNOWN
    if "default" in schema:
        return schema["default"]
    return _fitted(keywords(facts.task), schema) if needed else UNKNOWN


def _date(name: str, schema: Mapping[str, Any], facts: Facts) -> str:
    """A date in the task, or the next working day."""
    named = facts.matching(r"\d{4}-\d{2}-\d{2}") if "20" in facts.task else None
    day = datetime.now(UTC) + timedelta(days=1)
    while day.weekday() > 4:
        day += timedelta(days=1)
    date = named if named and named in facts.task else day.date().isoformat()
    return date if schema["format"] == "date" else f"{date}T09:00:00Z"


def _fitted(text: str, schema: Mapping[str, Any]) -> str:
    most = schema.get("maxLength", 4_000)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _rewritten(text: str, reason: str, schema: Mapping[str, Any]) -> str:
    paragraphs = text.split("\n\n")
    if re.search(r"\b(short|shorter|brief|concise|long)\b", reason.lower()) and len(paragraphs) > 2:
        return "\n\n".join([paragraphs[0], paragraphs[1].split("\n")[0], paragraphs[-1]])
    # The wish of the person stands before the last paragraph, which is the greeting.
    wish = reason[:1].upper() + reason[1:].rstrip(".") + "."
    return _fitted("\n\n".join([*paragraphs[:-1], wish, paragraphs[-1]]), schema)


def _spoken(name: str) -> str:
    """`sendCopy` as people write it: `send copy`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").lower()


def _says(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word.lower())}\b", text) is not None


def _everything(facts: Facts) -> str:
    return f"{facts.task} {facts.documents}".lower()
