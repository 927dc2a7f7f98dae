"""Every command with its arguments and options, from the command line itself."""

import inspect
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from rota.cli import cli
from tools.reference import markdown
from tools.reference.markdown import code

INTRODUCTION = """\
All commands of `rota`. [The command line](../command-line.md) explains how to sign in, what the
exit codes mean and how the inbox works, and [Operating](../operating.md#commands) describes
`rota admin`. Every command has `--help`."""
# Of the shell, and the same for every command.
SHELL = frozenset(("install_completion", "show_completion", "help"))


def pages() -> dict[str, str]:
    root = typer.main.get_command(cli)
    parts = [INTRODUCTION]
    for name, command in _commands("rota", root):
        parts += _command(name, command)
    return {"commands.md": markdown.page("Commands", *parts)}


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The commands below this one, each before those below it."""
    yield name, command
    for below, found in getattr(command, "commands", {}).items():
        if not found.hidden:
            yield from _commands(f"{name} {below}", found)


def _command(name: str, command: Any) -> Iterator[str]:
    is_group = hasattr(command, "commands")
    yield f"{'##' if is_group else '###'} {name}"
    yield _prose(command.help)
    parameters = [found for found in command.params if found.name not in SHELL]
    if not is_group:
        words = [name, *(_usage(found) for found in parameters if _is_argument(found))]
        if any(not _is_argument(found) for found in parameters):
            words.append("[OPTIONS]")
        yield f"```\n{' '.join(words)}\n```"
    arguments = [
        (code(_name(found)), _prose(found.help)) for found in parameters if _is_argument(found)
    ]
    if arguments:
        yield markdown.table(("argument", "meaning"), arguments)
    options = [_option(found) for found in parameters if not _is_argument(found)]
    if options:
        yield markdown.table(("option", "value", "default", "meaning"), options)


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper()).strip("[]")


def _usage(argument: Any) -> str:
    name = _name(argument) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> tuple[str, str, str, str]:
    names = ", ".join(map(code, (*option.opts, *option.secondary_opts)))
    return names, _value(option), _default(option), " ".join(_meaning(option))


def _meaning(option: Any) -> Iterator[str]:
    text = _prose(option.help)
    yield text if text.endswith((".", "…")) else f"{text}."
    if option.required:
        yield "Required."
    if option.multiple and "repeated" not in text:
        yield "Can be repeated."
    if option.envvar:
        yield f"Also read from {code(option.envvar)}."


def _value(option: Any) -> str:
    if option.is_flag:
        return ""
    if option.metavar:
        return code(option.metavar)
    annotation = option.type_descriptor.annotation
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(code(str(choice.value)) for choice in annotation)
    if get_origin(annotation) is Literal:
        return ", ".join(map(code, get_args(annotation)))
    names = {int: "whole number", float: "number", datetime: "time", Path: "path"}
    name = names.get(annotation, "text")
    if option.min is not None and option.max is not None:
        return f"{name} from {option.min} to {option.max}"
    return f"{name}, at least {option.min}" if option.min is not None else name


def _default(option: Any) -> str:
    default = option.show_default if isinstance(option.show_default, str) else option.default
    if option.is_flag or callable(default) or default in (None, "", (), []):
        return ""
    if isinstance(default, list | tuple):
        return ", ".join(code(str(value)) for value in default)
    return code(str(getattr(default, "value", default)))


def _prose(text: str | None) -> str:
    return markdown.prose(inspect.cleandoc(text or "").replace("\b", ""))
