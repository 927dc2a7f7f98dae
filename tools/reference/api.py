"""The API: a page for each tag of the OpenAPI descriptions, with its operations and objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.reference import markdown, schema
from tools.reference.markdown import anchor, code
from tools.reference.schema import Schema

OPENAPI = Path(__file__).parents[2] / "openapi"
VARIANTS = ("a", "b")
Operation = dict[str, Any]
# In every operation.
_COMMON_PARAMETERS = frozenset(("ServiceAccount", "ApiVersion", "IdempotencyKey"))
INTRODUCTION = """\
Every operation of the JSON API. [Requests](../../requests.md) describes what all of them have in
common, [Who can do what](../../access.md) who can call them, and [Rate
limits](../../rate-limits.md) how often. A running service shows the same description at `/docs`,
where operations can be tried, and serves it as `/openapi.json`. `openapi/` in the repository has
the files for generators of clients."""


class Description:
    """The descriptions of both variants, as one."""

    def __init__(self) -> None:
        self._variants = {
            variant: json.loads((OPENAPI / f"variant-{variant}.json").read_text())
            for variant in VARIANTS
        }
        first = self._variants["a"]
        self.components: dict[str, dict[str, Any]] = {}
        tags = {tag["name"]: tag for found in self._variants.values() for tag in found["tags"]}
        self.tags: dict[str, str] = {name: tag["description"] for name, tag in tags.items()}
        for found in reversed(self._variants.values()):
            for kind, named in found["components"].items():
                self.components[kind] = named | self.components.get(kind, {})
        for kind, named in first["components"].items():
            self.components[kind] |= named
        self.schemas: dict[str, Schema] = self.components["schemas"]
        self._home = self._homes()

    def operations(self, tag: str) -> Iterator[tuple[str, str, Operation, str]]:
        """Method, path, operation, and the only variant that has it, or an empty text."""
        seen: dict[tuple[str, str], tuple[Operation, list[str]]] = {}
        for variant, found in self._variants.items():
            for path, methods in found["paths"].items():
                for method, operation in methods.items():
                    if method != "parameters" and tag in operation["tags"]:
                        entry = seen.setdefault((method.upper(), path), (operation, []))
                        entry[1].append(variant)
        for (method, path), (operation, variants) in seen.items():
            only = variants[0] if len(variants) < len(VARIANTS) else ""
            yield method, path, operation, only

    def resolve(self, part: dict[str, Any]) -> dict[str, Any]:
        reference = part.get("$ref", "")
        if not reference:
            return part
        _, _, kind, name = reference.split("/")
        found: dict[str, Any] = self.components[kind][name]
        return found

    def reached(self, part: Any) -> list[str]:
        """The schemas that a part uses, also through others and through shared parts."""
        found: list[str] = []
        waiting = [*schema.named(part)]
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found.append(name)
                waiting += schema.named(self.schemas[name])
        return found

    def _homes(self) -> dict[str, str]:
        """The tag whose page has each schema: the first that uses it."""
        homes: dict[str, str] = {}
        for tag in self.tags:
            for _, _, operation, _ in self.operations(tag):
                parts = [operation]
                parts += [self.resolve(part) for part in operation.get("parameters", [])]
                parts += [self.resolve(part) for part in operation["responses"].values()]
                for name in self.reached(parts):
                    homes.setdefault(name, tag)
        return homes

    def schemas_of(self, tag: str) -> list[str]:
        return sorted(name for name, home in self._home.items() if home == tag)

    def link(self, name: str, tag: str) -> str:
        home = self._home[name]
        page = "" if home == tag else file_of(home)
        return f"[{name}]({page}#{anchor(name)})"

    def other_variant(self, name: str) -> Schema | None:
        """The schema in Variant B, if Variant A has another one."""
        a, b = (self._variants[variant]["components"]["schemas"].get(name) for variant in VARIANTS)
        return b if a and b and a != b else None


def file_of(tag: str) -> str:
    return f"{anchor(tag)}.md"


def pages() -> dict[str, str]:
    description = Description()
    found = {
        f"api/{file_of(tag)}": markdown.page(tag, *_tag(description, tag))
        for tag in description.tags
    }
    return found | {"api/README.md": markdown.page("API", *_index(description))}


def _index(description: Description) -> Iterator[str]:
    yield INTRODUCTION
    for tag, text in description.tags.items():
        yield f"## {tag}"
        yield markdown.prose(text)
        rows = [
            (code(f"{method} {path}"), _link(tag, operation) + _only(only))
            for method, path, operation, only in description.operations(tag)
        ]
        yield markdown.table(("operation", "what it does"), rows)


def _link(tag: str, operation: Operation) -> str:
    title = operation["summary"]
    return f"[{title}]({file_of(tag)}#{anchor(title)})"


def _only(variant: str) -> str:
    return f" (Variant {variant.upper()})" if variant else ""


def _tag(description: Description, tag: str) -> Iterator[str]:
    yield markdown.prose(description.tags[tag])
    for method, path, operation, only in description.operations(tag):
        yield f"## {operation['summary']}"
        yield f"```http\n{method} {path}\n```"
        if only:
            yield f"Only in Variant {only.upper()}."
        yield markdown.prose(operation["description"])
        yield from _parameters(description, tag, operation)
        yield from _body(description, tag, operation)
        yield from _responses(description, tag, operation)
    names = description.schemas_of(tag)
    if names:
        yield "## Objects"
    for name in names:
        yield f"### {name}"
        yield from _object(description, tag, description.schemas[name])
        other = description.other_variant(name)
        if other:
            yield "In Variant B:"
            yield from _object(description, tag, other)


def _parameters(description: Description, tag: str, operation: Operation) -> Iterator[str]:
    rows = []
    for part in operation.get("parameters", []):
        if part.get("$ref", "").rpartition("/")[2] in _COMMON_PARAMETERS:
            continue
        found = description.resolve(part)
        name = code(found["name"]) + (" (required)" if found.get("required") else "")
        kind = schema.kind(found["schema"], lambda name: description.link(name, tag))
        inside = {key: value for key, value in found["schema"].items() if key != "description"}
        text = schema.meaning(inside | {"description": found.get("description", "")})
        rows.append((name, found["in"], kind, text))
    if rows:
        yield markdown.table(("parameter", "in", "type", "meaning"), rows)


def _body(description: Description, tag: str, operation: Operation) -> Iterator[str]:
    body = operation.get("requestBody")
    if not body:
        return
    kinds = [
        schema.kind(content["schema"], lambda name: description.link(name, tag))
        for content in body["content"].values()
    ]
    optional = "" if body.get("required") else ", optional"
    yield f"**Body**{optional}: {' or '.join(kinds)}"
    for content in body["content"].values():
        for example in content.get("examples", {}).values():
            value = description.resolve(example).get("value")
            yield f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```"


def _responses(description: Description, tag: str, operation: Operation) -> Iterator[str]:
    rows = []
    for status, part in operation["responses"].items():
        found = description.resolve(part)
        kinds = [
            schema.kind(content["schema"], lambda name: description.link(name, tag))
            for content in found.get("content", {}).values()
            if "schema" in content
        ]
        rows.append((status, " or ".join(kinds), markdown.prose(found["description"])))
    yield markdown.table(("status", "body", "meaning"), rows)


def _object(description: Description, tag: str, shape: Schema) -> Iterator[str]:
    def link(name: str) -> str:
        return description.link(name, tag)

    yield markdown.prose(shape.get("description", ""))
    if "enum" in shape:
        yield f"One of {', '.join(code(str(value)) for value in shape['enum'])}."
        return
    parts = shape.get("allOf", [shape])
    for part in parts:
        if name := schema.name_of(part):
            yield f"All fields of {link(name)}, and:"
    rows = [row for part in parts for row in schema.fields(part, link)]
    if rows:
        yield markdown.table(("field", "type", "meaning"), rows)
