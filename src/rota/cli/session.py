"""What a command of the client gets: a client of the service, and whether to print JSON."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rota.cli.exits import ExitCode, errors_as_one_line, fail

if TYPE_CHECKING:
    from rota.cli.connection import Target
    from rota_sdk import Rota

_PROFILE = Annotated[
    str | None,
    typer.Option("--profile", envvar="ROTA_PROFILE", help="The profile to use. See: rota profiles"),
]
_ACCOUNT = Annotated[
    str | None,
    typer.Option("--account", help="The account: personal, company or acct_…"),
]
_JSON = Annotated[bool, typer.Option("--json", help="Print JSON as the API returns it.")]
_OPTIONS = {"profile": _PROFILE, "account": _ACCOUNT, "as_json": _JSON}


@dataclass
class Session:
    profile: str | None
    account: str | None
    as_json: bool
    _opened: list["Rota"] = field(default_factory=list)

    @cached_property
    def target(self) -> "Target":
        from rota.cli.connection import target

        return target(self.profile, self.account)

    @cached_property
    def client(self) -> "Rota":
        from rota.cli.connection import connect

        client = connect(self.target)
        self._opened.append(client)
        return client

    @cached_property
    def url(self) -> str:
        """The service, also if nobody is signed in."""
        from rota.cli.connection import service_of

        return service_of(self.profile)

    @cached_property
    def anonymous_client(self) -> "Rota":
        from rota.cli.connection import client_of

        client = client_of(self.url, "", None)
        self._opened.append(client)
        return client

    def sign_in_hint(self) -> str:
        """What to do if the service does not accept the credential."""
        if self.target.profile is None:
            return "Check ROTA_API_KEY."
        option = f" --profile {self.profile}" if self.profile else ""
        return f"To sign in again: rota login{option}"

    def another_client(self) -> "Rota":
        """A client with connections of its own, for another thread. It stays open."""
        from rota.cli.connection import connect

        return connect(self.target)

    def close(self) -> None:
        for client in self._opened:
            client.close()


def client_command(
    group: typer.Typer, name: str | None = None, panel: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a command that talks to the service. Its first parameter is the Session.

    Every such command has --profile, --account and --json, and prints errors as one line.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        def run(**arguments: Any) -> None:
            shared = {option: arguments.pop(option) for option in _OPTIONS}
            session = Session(**shared)
            with errors_as_one_line(as_json=session.as_json, sign_in=session.sign_in_hint):
                try:
                    function(session, **arguments)
                finally:
                    session.close()

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        defaults = {"profile": None, "account": None, "as_json": False}
        shared = [
            inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults[option],
                annotation=annotation,
            )
            for option, annotation in _OPTIONS.items()
        ]
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own] + shared
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        group.command(name, rich_help_panel=panel)(run)
        return function

    return add


def read_text(source: str | None) -> str | None:
    """A text option: the text itself, @FILE, or - for standard input. @@ begins a text with @."""
    if source is None or not (source == "-" or source.startswith("@")):
        return source
    if source.startswith("@@"):
        return source[1:]
    import sys
    from pathlib import Path

    try:
        # Always UTF-8, whatever the locale is.
        if source == "-":
            return sys.stdin.buffer.read().decode()
        return Path(source[1:]).read_text(encoding="utf-8")
    except OSError as error:
        fail(f"Cannot read {source[1:]}: {error.strerror}.", ExitCode.USAGE)
    except UnicodeDecodeError:
        fail(f"{source[1:] or 'Standard input'} is not UTF-8 text.", ExitCode.USAGE)


def read_json(source: str | None, option: str) -> Any:
    """The same for JSON."""
    import json

    text = read_text(source)
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        fail(f"{option} is not valid JSON: {error}", ExitCode.USAGE)
