"""What every command needs: settings, the built service, and errors as one readable line."""

import asyncio
import getpass
import os
import platform
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, cast
from uuid import UUID

import typer

from rota.cli import exits

if TYPE_CHECKING:
    from pydantic import ValidationError

    from rota.composition import Composition
    from rota.platform.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

T = TypeVar("T")
S = TypeVar("S", bound="Settings")

# Where `rota dev` keeps its data by default.
DEVELOPMENT = Path(".rota")
# The variables that say which deployment a command works on.
DEPLOYMENT = frozenset(("ROTA_ENV", "ROTA_DATABASE_URL", "ROTA_MIGRATION_DATABASE_URL"))


def load_settings() -> "Settings":
    """Reads ROTA_* variables; exits with 2 and names the variable if one is invalid."""
    from rota.platform.settings import Settings

    return named_problems(Settings)


def named_problems(read: Callable[[], S]) -> S:
    """Reads settings; exits with 2 and names the variable if one is invalid."""
    from pydantic import ValidationError

    try:
        return read()
    except ValidationError as error:
        problems = list(problems_of(error))
        if exits.prints_json():
            exits.fail("; ".join(problems), exits.ExitCode.USAGE)
        for problem in problems:
            typer.secho(problem, err=True)
        raise typer.Exit(2) from None


def problems_of(error: "ValidationError") -> Iterator[str]:
    """One line for each problem: the variable, the place inside its JSON, and what is wrong."""
    for problem in error.errors():
        variable, *inner = [str(part) for part in problem["loc"]] or [""]
        names = [f"ROTA_{variable.upper()}"] if variable else []
        names += [".".join(inner)] if inner else []
        for line in problem["msg"].removeprefix("Value error, ").splitlines():
            yield ": ".join([*names, line])


def operator_settings() -> "Settings":
    """The settings of an operator command: those of the `rota dev` that runs in this folder, if
    the environment names neither a database nor the kind of deployment."""
    from rota.platform.settings import OperatorSettings

    development: dict[str, Any] = _development()
    return named_problems(lambda: OperatorSettings(**development))


def _development() -> dict[str, str]:
    """The settings of the `rota dev` that runs in this folder. None of them if the environment
    names a deployment: a command must not mix the two."""
    from rota.dev.directory import DataDirectory
    from rota.platform.settings import PREFIX, Settings

    # Settings can be written in small letters too.
    if {name.upper() for name in os.environ} & DEPLOYMENT:
        return {}
    found = DataDirectory(DEVELOPMENT).published()
    if found is None:
        return {}
    typer.echo(f"Using the `rota dev` of {DEVELOPMENT.absolute()}.", err=True)
    values = {name: found.get(f"{PREFIX}{name.upper()}") for name in Settings.model_fields}
    return {name: value for name, value in values.items() if value}


def owner_url(settings: "Settings") -> str:
    """The database URL of the role that owns the tables."""
    return (settings.migration_database_url or settings.database_url).get_secret_value()


def with_composition(
    settings: "Settings",
    work: Callable[["Composition"], Awaitable[T]],
    *,
    without_database: exits.ExitCode = exits.ExitCode.ERROR,
) -> T:
    """Runs `work` with the built service, on one database connection."""
    from rota.composition import Composition

    async def run() -> T:
        async with Composition(settings, pool_size=1) as parts:
            return await work(parts)

    with exit_on_error(without_database=without_database):
        return asyncio.run(run())


def run_or_exit(work: Coroutine[object, object, T]) -> T:
    with exit_on_error():
        return asyncio.run(work)


def act_as_operator(context: typer.Context) -> None:
    """What the command does is recorded for its name and the login that runs it.

    The callback of each group of commands. The arguments are not recorded: they can be secrets.
    """
    from rota.platform import audit

    try:
        login = getpass.getuser()
    except (OSError, KeyError):
        login = "unknown"  # The user of a container may have no name.
    names, at = [context.invoked_subcommand or ""], context
    while (above := at.parent) is not None:
        names.insert(0, at.info_name or "")
        at = cast(typer.Context, above)
    command = " ".join(["rota", *names])
    audit.act_as(audit.Actor("operator", name=f"{command} by {login}@{platform.node()}"))


@contextmanager
def exit_on_error(*, without_database: exits.ExitCode = exits.ExitCode.ERROR) -> Iterator[None]:
    """Exits with 1 and prints one line for an expected error. `without_database` is the code if
    the database cannot be used."""
    from sqlalchemy.exc import SQLAlchemyError

    from rota.platform.database_errors import EXPLAINED, explain
    from rota.platform.errors import ApiError
    from rota.platform.start_checks import StartRefused

    try:
        yield
    except ApiError as error:
        fail(error.message)
    except StartRefused as error:
        fail(str(error))
    except (*EXPLAINED, SQLAlchemyError) as error:
        fail(explain(error), without_database)


def parse_id(prefix: str, text: str) -> UUID:
    from rota.platform import ids

    found = ids.from_wire(prefix, text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not an ID of the form {prefix}_….")
    return found


def fail(message: str, code: exits.ExitCode = exits.ExitCode.ERROR) -> NoReturn:
    if exits.prints_json():
        exits.fail(message, code)
    typer.secho(message, err=True)
    raise typer.Exit(code)
