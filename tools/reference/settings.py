"""Every setting: name, type and default from `Settings`, the meaning from `.env.example`."""

import json
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from rota.platform.settings import PREFIX, Settings
from tools.reference import markdown
from tools.reference.markdown import code

EXAMPLE = Path(__file__).parents[2] / ".env.example"
# Their defaults are for development only, and public.
KEYS = frozenset(("secret_key", "audit_key"))
INTRODUCTION = """\
Rota reads its settings from the environment, and only from there.
[Operating](../operating.md#settings) groups them by subject. `.env.example` has the same list as
a file to copy. In the environment, a list is written with commas between its items, and an
object as JSON. `rota admin doctor` checks the settings of an installation."""


def pages() -> dict[str, str]:
    sections: dict[str, list[tuple[str, str]]] = {}
    for section, comment, names in _paragraphs(EXAMPLE.read_text()):
        sections.setdefault(section, []).extend((name, comment) for name in names)
    parts = [INTRODUCTION]
    for section, settings in sections.items():
        rows = [_row(name, comment) for name, comment in settings]
        table = markdown.table(("setting", "type", "default", "meaning"), rows)
        parts += (f"## {section}", table)
    return {"settings.md": markdown.page("Settings", *parts)}


def _paragraphs(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """The section, the comment and the settings of each paragraph."""
    section = ""
    for paragraph in text.split("\n\n"):
        if found := re.fullmatch(r"# --- (.+) ---", paragraph.strip()):
            section = found[1]
            continue
        lines = [line.removeprefix("#").strip() for line in paragraph.splitlines()]
        names = [line.partition("=")[0] for line in lines if line.startswith(PREFIX)]
        if section and names:
            comment = " ".join(line for line in lines if not line.startswith(PREFIX))
            yield section, comment, names


def _row(name: str, comment: str) -> tuple[str, str, str, str]:
    field_name = name.removeprefix(PREFIX).lower()
    field = Settings.model_fields[field_name]
    kind = ", ".join((_kind(field.annotation), *_limits(field)))
    default = "for development only" if field_name in KEYS else code(_default(field.default))
    return code(name), kind, default, markdown.prose(comment)


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(part) for part in arguments if part is not types.NoneType)
    if origin is Literal:
        return " or ".join(code(value) for value in arguments)
    if origin is tuple:
        inner = _kind(arguments[0])
        return f"list of {inner}s" if inner in ("text", "secret") else "JSON list"
    if origin is dict:
        return "list of `name=URL`" if arguments == (str, str) else "JSON object"
    names = {int: "whole number", float: "number", bool: "`true` or `false`", str: "text"}
    return names.get(annotation, "secret" if annotation is SecretStr else "path of a file")


def _limits(field: FieldInfo) -> Iterator[str]:
    parts = [*field.metadata]
    for part in get_args(field.annotation):
        for inner in get_args(part)[1:] if get_origin(part) is Annotated else ():
            parts += getattr(inner, "metadata", [])
    limits: dict[str, Any] = {}
    for part in parts:
        for name in ("ge", "gt", "le"):
            if getattr(part, name, None) is not None:
                limits[name] = getattr(part, name)
    if "ge" in limits and "le" in limits:
        yield f"from {limits['ge']} to {limits['le']}"
    elif "ge" in limits:
        yield f"at least {limits['ge']}"
    elif "gt" in limits:
        yield f"more than {limits['gt']}"


def _default(value: Any) -> str:
    if value is None or value in ((), {}):
        return ""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return value if isinstance(value, str) else json.dumps(value)
