"""An agent's file: YAML front matter between two lines of dashes, then its instructions.

All files are read and all that is wrong with any of them is told at once, with
its line and what to write instead.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

import rota
from rota.agents.fields import AgentFields, ApprovalFields
from rota.agents.model import Definition

# These are paths beside /api/agents/{name}.
RESERVED = frozenset({"resolve", "departments", "catalog"})
MAX_INSTRUCTIONS = 100_000

_FENCE = "---"
_MAX_DEPTH = 4
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class CatalogInvalid(Exception):
    """Some file of the catalog is wrong, so none of them counts."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def catalog_folder() -> Path:
    """The catalog that comes with Rota."""
    package = Path(rota.__file__).parent
    # A wheel carries the folder inside the package, a checkout beside it.
    inside = package / "catalog"
    return inside if inside.is_dir() else package.parents[1] / "catalog"


Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Spot:
    line: int
    node: yaml.Node


@dataclass(frozen=True, slots=True)
class _Front:
    """The front matter as data, and where each part of it stands."""

    values: dict[str, Any]
    spots: dict[Place, _Spot]

    def line(self, place: Place) -> int:
        return self.spots[place].line

    def nearest(self, place: Place) -> Place:
        """Without the parts of a Pydantic location that no file has, such as a union's."""
        while place not in self.spots:
            place = place[:-1]
        return place


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    front: _Front
    definition: Definition


class _Wrong(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def read_catalog(folder: Path) -> list[Definition]:
    """Every agent below the folder, or CatalogInvalid with all that is wrong."""
    paths = sorted(
        path
        for path in folder.rglob("*.md")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not paths:
        raise CatalogInvalid(
            [Problem(folder, 0, "there is no *.md file in this folder; name the catalog's folder")]
        )
    problems: list[Problem] = []
    files: list[_File] = []
    for path in paths:
        try:
            front, instructions = _parts(path)
        except _Wrong as wrong:
            problems.append(Problem(path, wrong.line, wrong.message))
            continue
        try:
            fields = AgentFields.model_validate(front.values)
        except ValidationError as error:
            problems += [Problem(path, line, text) for line, text in _explained(front, error)]
        else:
            files.append(_File(path, front, fields.definition(instructions)))
    problems += _clashes(files)
    if problems:
        raise CatalogInvalid(sorted(problems))
    return [file.definition for file in files]


def _parts(path: Path) -> tuple[_Front, str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise _Wrong(1, "the file is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise _Wrong(1, f"the file cannot be read: {error.strerror}") from None
    lines = text.split("\n")
    if "\0" in text:
        at = next(number for number, line in enumerate(lines, 1) if "\0" in line)
        raise _Wrong(at, "there is a NUL character; remove it")
    if lines[0].rstrip() != _FENCE:
        raise _Wrong(1, "there is no front matter; begin the file with a line of three dashes, ---")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise _Wrong(1, "the front matter does not end; close it with a line of three dashes, ---")
    front = _front("\n".join(lines[1:end]))
    instructions = "\n".join(lines[end + 1 :]).strip()
    if not instructions:
        raise _Wrong(end + 1, "there are no instructions; write them below the front matter")
    if len(instructions) > MAX_INSTRUCTIONS:
        raise _Wrong(
            end + 2,
            f"the instructions have {len(instructions)} characters; "
            f"shorten them to {MAX_INSTRUCTIONS}",
        )
    return front, instructions


def _front(text: str) -> _Front:
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise _Wrong(line, f"the front matter is no YAML: {error.problem}; correct it") from None
    except yaml.YAMLError as error:
        said = str(error).splitlines()[0]
        raise _Wrong(1, f"the front matter is no YAML: {said}; correct it") from None
    if not isinstance(root, yaml.MappingNode):
        raise _Wrong(1, "the front matter is no list of fields; write lines like name: my-agent")
    # The whole of it stands at the opening fence.
    spots: dict[Place, _Spot] = {(): _Spot(1, root)}
    return _Front(_fields_of(root, (), spots), spots)


def _fields_of(node: yaml.MappingNode, place: Place, spots: dict[Place, _Spot]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, item in node.value:
        line = _line(key)
        if not isinstance(key, yaml.ScalarNode):
            raise _Wrong(line, "a field's name must be a word; correct it")
        if key.value in values:
            raise _Wrong(line, f"`{key.value}` is there a second time; keep one of them")
        # A field stands where its name stands, also if its value begins below.
        values[key.value] = _value(item, line, (*place, key.value), spots)
    return values


def _value(node: yaml.Node, line: int, place: Place, spots: dict[Place, _Spot]) -> Any:
    """The node as plain data. Only what JSON has is more than text, so `no` is a word."""
    if len(place) > _MAX_DEPTH:
        raise _Wrong(line, "this is nested too deeply; no field is so deep")
    spots[place] = _Spot(line, node)
    if isinstance(node, yaml.MappingNode):
        return _fields_of(node, place, spots)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, _line(item), (*place, n), spots) for n, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    text: str = node.value
    if node.style is not None:
        return text
    if _WHOLE_NUMBER.fullmatch(text):
        return int(text)
    return _WORDS.get(text, text)


def _line(node: yaml.Node) -> int:
    # PyYAML counts from 0, and the fence is line 1.
    return int(node.start_mark.line) + 2


def _explained(front: _Front, error: ValidationError) -> Iterator[tuple[int, str]]:
    told: set[Place] = set()
    for item in error.errors():
        kind, location = item["type"], item["loc"]
        if kind == "missing":
            field = ".".join(map(str, location))
            line = front.line(location[:-1])
            yield line, f"`{field}` is missing; it must be {_wanted(location)}"
            continue
        place = front.nearest(location)
        if place in told:
            continue
        told.add(place)
        field = ".".join(map(str, place))
        if kind == "extra_forbidden":
            yield front.line(place), f"`{field}` is no field of an agent; {_instead(place)}"
        else:
            hint = "; put it in quotes to make it text" if kind == "string_type" else ""
            shown = _shown(front.spots[place].node)
            yield (
                front.line(place),
                f"`{field}` is {shown}; it must be {_wanted(place)}{hint}",
            )


def _fields(place: Place) -> dict[str, str]:
    """The fields that there are beside this place, with what each must be."""
    nested = place[0] == "approval" and place[1:]
    inside: type[BaseModel] = ApprovalFields if nested else AgentFields
    return {str(f.alias): str(f.description) for f in inside.model_fields.values()}


def _wanted(place: Place) -> str:
    names = [str(part) for part in place if isinstance(part, str)]
    wanted = _fields(tuple(names))[names[-1]]
    if isinstance(place[-1], int):
        return f"part of {wanted}"
    return wanted


def _instead(place: Place) -> str:
    near = difflib.get_close_matches(str(place[-1]), _fields(place), n=1)
    return f"did you mean `{near[0]}`?" if near else "remove it"


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        text = node.value if len(node.value) <= 60 else node.value[:60] + "…"
        quoted = f'"{text}"' if node.style else text
        return quoted or "empty"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a group of fields"


def _clashes(files: list[_File]) -> Iterator[Problem]:
    """Names and aliases that are reserved, or that something else has already."""
    taken: dict[str, str] = {}
    names = [(file, file.definition.name, ("name",)) for file in files]
    aliases = [
        (file, alias, ("aliases", n))
        for file in files
        for n, alias in enumerate(file.definition.aliases)
    ]
    called: list[tuple[_File, str, Place]] = [*names, *aliases]
    for file, name, place in called:
        line = file.front.line(place)
        if name in RESERVED:
            yield Problem(file.path, line, f"`{name}` is a reserved name; choose another")
        elif name in taken:
            yield Problem(file.path, line, f"`{name}` is taken by {taken[name]}; choose another")
        else:
            taken[name] = f"{file.path}:{line}"
