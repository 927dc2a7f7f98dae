"""Reads agent files: YAML front matter between two lines of dashes, then the instructions.

All problems of all files are reported together, each with its line and what to write instead.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

import rota
from rota.agents.fields import TEMPLATE, AgentFields, ApprovalFields
from rota.agents.model import Definition

# Other endpoints use these paths below /api/agents/, and `tasks` below /a2a/.
RESERVED = frozenset({"resolve", "departments", "catalog", "tasks"})
MAX_INSTRUCTIONS = 100_000

_FENCE = "---"
_MAX_DEPTH = 4
# A JSON Schema needs more levels, and numbers with decimals.
_SCHEMA = "outputSchema"
_MAX_SCHEMA_DEPTH = 40
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]{1,17}")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class CatalogInvalid(Exception):
    """At least one file of the catalog is invalid, so none is used."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def catalog_folder() -> Path:
    """The folder of the catalog that comes with Rota."""
    package = Path(rota.__file__).parent
    # In a wheel the folder is inside the package, in a checkout next to src.
    inside = package / "catalog"
    return inside if inside.is_dir() else package.parents[1] / "catalog"


Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Position:
    line: int
    node: yaml.Node


@dataclass(frozen=True, slots=True)
class _FrontMatter:
    """The front matter as data, with the position of each part."""

    values: dict[str, Any]
    positions: dict[Location, _Position]

    def line(self, location: Location) -> int:
        return self.positions[location].line

    def nearest(self, location: Location) -> Location:
        """The location without parts that only Pydantic has, such as those of a union."""
        while location not in self.positions:
            location = location[:-1]
        return location


@dataclass(frozen=True, slots=True)
class AgentFile:
    path: Path
    front: _FrontMatter
    definition: Definition

    def line(self, field: str) -> int:
        return self.front.line((field,))


class _FileError(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def read_files(folder: Path) -> list[AgentFile]:
    """The file of every agent below the folder. Raises CatalogInvalid with all problems."""
    paths = sorted(
        path
        for path in folder.rglob("*.md")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not paths:
        raise CatalogInvalid(
            [Problem(folder, 0, "there are no *.md files in this folder; check its path")]
        )
    problems: list[Problem] = []
    files: list[AgentFile] = []
    for path in paths:
        try:
            front, instructions = _read_file(path)
        except _FileError as error:
            problems.append(Problem(path, error.line, error.message))
            continue
        try:
            fields = AgentFields.model_validate(front.values)
        except ValidationError as error:
            problems += [Problem(path, line, text) for line, text in _explain(front, error)]
        else:
            files.append(AgentFile(path, front, fields.definition(instructions)))
    problems += name_conflicts(files, {})
    problems += _unused_templates(files)
    if problems:
        raise CatalogInvalid(sorted(problems))
    return files


def _read_file(path: Path) -> tuple[_FrontMatter, str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise _FileError(1, "the file is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise _FileError(1, f"the file cannot be read: {error.strerror}") from None
    lines = text.split("\n")
    if "\0" in text:
        at = next(number for number, line in enumerate(lines, 1) if "\0" in line)
        raise _FileError(at, "the line contains a NUL character; remove it")
    if lines[0].rstrip() != _FENCE:
        raise _FileError(
            1, "the front matter is missing; start the file with a line of three dashes, ---"
        )
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise _FileError(
            1, "the front matter does not end; close it with a line of three dashes, ---"
        )
    front = _parse_front_matter("\n".join(lines[1:end]))
    instructions = "\n".join(lines[end + 1 :]).strip()
    if not instructions:
        raise _FileError(end + 1, "the instructions are missing; write them below the front matter")
    if len(instructions) > MAX_INSTRUCTIONS:
        raise _FileError(
            end + 2,
            f"the instructions have {len(instructions)} characters; "
            f"shorten them to {MAX_INSTRUCTIONS}",
        )
    return front, instructions


def _parse_front_matter(text: str) -> _FrontMatter:
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise _FileError(
            line, f"the front matter is not valid YAML: {error.problem}; correct it"
        ) from None
    except yaml.YAMLError as error:
        first_line = str(error).splitlines()[0]
        raise _FileError(
            1, f"the front matter is not valid YAML: {first_line}; correct it"
        ) from None
    if not isinstance(root, yaml.MappingNode):
        raise _FileError(1, "the front matter has no fields; write lines like name: my-agent")
    # The position of the front matter itself is the opening fence.
    positions: dict[Location, _Position] = {(): _Position(1, root)}
    return _FrontMatter(_fields_of(root, (), positions), positions)


def _fields_of(
    node: yaml.MappingNode, location: Location, positions: dict[Location, _Position]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, item in node.value:
        line = _line(key)
        if not isinstance(key, yaml.ScalarNode):
            raise _FileError(line, "a field's name must be a word; correct it")
        if key.value in values:
            raise _FileError(line, f"`{key.value}` appears twice; remove one of them")
        # The position of a field is that of its name, even if the value starts on a later line.
        values[key.value] = _value(item, line, (*location, key.value), positions)
    return values


def _value(
    node: yaml.Node, line: int, location: Location, positions: dict[Location, _Position]
) -> Any:
    """The node as plain data. Only JSON's words have a meaning, so `no` is text."""
    in_schema = location[0] == _SCHEMA
    if len(location) > (_MAX_SCHEMA_DEPTH if in_schema else _MAX_DEPTH):
        raise _FileError(line, "this is nested too deeply; remove a level")
    positions[location] = _Position(line, node)
    if isinstance(node, yaml.MappingNode):
        return _fields_of(node, location, positions)
    if isinstance(node, yaml.SequenceNode):
        return [
            _value(item, _line(item), (*location, n), positions)
            for n, item in enumerate(node.value)
        ]
    assert isinstance(node, yaml.ScalarNode)
    text: str = node.value
    if node.style is not None:
        return text
    if _WHOLE_NUMBER.fullmatch(text):
        return int(text)
    if in_schema and _DECIMAL.fullmatch(text):
        return float(text)
    return _WORDS.get(text, text)


def _line(node: yaml.Node) -> int:
    # PyYAML counts lines from 0, and the fence is line 1.
    return int(node.start_mark.line) + 2


def _explain(front: _FrontMatter, error: ValidationError) -> Iterator[tuple[int, str]]:
    reported: set[Location] = set()
    for item in error.errors():
        kind, location = item["type"], item["loc"]
        if kind == "missing":
            field = ".".join(map(str, location))
            line = front.line(location[:-1])
            yield line, f"`{field}` is missing; it must be {_requirement(location)}"
            continue
        location = front.nearest(location)
        if location in reported:
            continue
        reported.add(location)
        field = ".".join(map(str, location))
        if kind == "extra_forbidden":
            yield (
                front.line(location),
                f"`{field}` is not a field of an agent; {_suggestion(location)}",
            )
        else:
            hint = "; put it in quotes to make it text" if kind == "string_type" else ""
            value = _describe(front.positions[location].node)
            yield (
                front.line(location),
                f"`{field}` is {value}; it must be {_requirement(location)}{hint}",
            )


def _fields(location: Location) -> dict[str, str]:
    """The fields next to this location, with their descriptions."""
    nested = location[0] == "approval" and location[1:]
    inside: type[BaseModel] = ApprovalFields if nested else AgentFields
    return {str(f.alias): str(f.description) for f in inside.model_fields.values()}


def _requirement(location: Location) -> str:
    if location[0] == "describe" and location[1:]:
        return TEMPLATE
    names = [str(part) for part in location if isinstance(part, str)]
    requirement = _fields(tuple(names))[names[-1]]
    if isinstance(location[-1], int):
        return f"part of {requirement}"
    return requirement


def _suggestion(location: Location) -> str:
    near = difflib.get_close_matches(str(location[-1]), _fields(location), n=1)
    return f"did you mean `{near[0]}`?" if near else "remove it"


def _describe(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        text = node.value if len(node.value) <= 60 else node.value[:60] + "…"
        quoted = f'"{text}"' if node.style else text
        return quoted or "empty"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a group of fields"


def name_conflicts(files: Sequence[AgentFile], used: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with names and aliases that are reserved or used twice.

    `used` says by what other agents of the catalog use theirs.
    """
    taken = dict(used)
    names = [(file, file.definition.name, ("name",)) for file in files]
    aliases = [
        (file, alias, ("aliases", n))
        for file in files
        for n, alias in enumerate(file.definition.aliases)
    ]
    called: list[tuple[AgentFile, str, Location]] = [*names, *aliases]
    for file, name, location in called:
        line = file.front.line(location)
        if name in RESERVED:
            yield Problem(file.path, line, f"`{name}` is a reserved name; choose another")
        elif name in taken:
            yield Problem(
                file.path, line, f"`{name}` is already used by {taken[name]}; choose another"
            )
        else:
            taken[name] = f"{file.path}:{line}"


def _unused_templates(files: list[AgentFile]) -> Iterator[Problem]:
    """Problems with sentences about tools that the agent cannot use."""
    for file in files:
        for tool in file.definition.describe:
            if not file.definition.may_use(tool):
                line = file.front.line(("describe", tool))
                yield Problem(
                    file.path,
                    line,
                    f"`describe` has a sentence for {tool}, which `tools` does not include; "
                    "correct the name or remove the line",
                )
