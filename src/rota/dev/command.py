"""`rota dev`: the command. What it does is in `run.py`, what it shows in `display.py`."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rota.dev.directory import LOG, DataDirectory, DirectoryError, DirectoryInUseError
from rota.dev.display import display
from rota.dev.processes import PartError
from rota.dev.run import Options, run, stop_other, until_signalled

DETACHED_READY_WITHIN_S = 120.0


class VariantName(StrEnum):
    A = "a"
    B = "b"


class Left(StrEnum):
    """Parts that one can do without."""

    MODEL = "model"
    IDP = "idp"
    STRIPE = "stripe"


def dev(
    variant: Annotated[VariantName, typer.Option(help="Which variant to run.")] = VariantName.A,
    port: Annotated[
        int, typer.Option(min=1024, max=65_000, help="Of the service; the parts' ports follow it.")
    ] = 8080,
    data: Annotated[Path, typer.Option(help="Where everything is kept.")] = Path(".rota"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data first.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; return when ready.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the one that uses --data.")] = False,
    without: Annotated[
        list[Left] | None, typer.Option(help="Leave a part out; may be given again.")
    ] = None,
) -> None:
    """Run everything on this machine: database, queues, model, sign-in and the service."""
    options = Options(data, variant, port, fresh, tuple(without or ()))
    if stop:
        code = stop_command(options)
    elif detach:
        code = detach_command(options, [sys.executable, "-m", "rota.dev"])
    else:
        code = run_command(options)
    raise typer.Exit(code)


def run_command(options: Options) -> int:
    console = Console()
    if os.environ.get("ROTA_ENV") == "production":
        console.print("`rota dev` lets anyone sign in as anyone, and ROTA_ENV says production.")
        return 1

    async def main() -> None:
        with display(console) as shown:
            work = run(options, os.environ, shown.changed, lambda words: say(console, words))
            await until_signalled(asyncio.create_task(work), console.show_cursor)

    try:
        asyncio.run(main())
    except (PartError, DirectoryError) as error:
        say(console, str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def detach_command(options: Options, program: list[str]) -> int:
    console = Console()
    directory = DataDirectory(options.data)
    try:
        directory.adopt()
        if directory.in_use() and (running := directory.running()) and running.alive:
            raise DirectoryInUseError(directory.path, running)
    except DirectoryError as error:
        say(console, str(error))
        return 1
    log = directory.path / LOG
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: S603
            [*program, *arguments(options)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=directory.compiling(os.environ),
            start_new_session=True,
        )
    try:
        words = _until_ready(directory, child)
    except KeyboardInterrupt:
        child.terminate()
        child.wait()
        return 130
    if words is None:
        say(console, log.read_text(errors="replace").rstrip())
        return 1
    say(console, f"{words}\n\nStop it with: rota dev --stop --data {options.data}")
    return 0


def _until_ready(directory: DataDirectory, child: subprocess.Popen[bytes]) -> str | None:
    """The words to greet with, or None when it ended instead."""
    deadline = time.monotonic() + DETACHED_READY_WITHIN_S
    while time.monotonic() < deadline:
        running = directory.running()
        if running and running.pid == child.pid and running.greeting:
            return running.greeting
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
            return None
    child.terminate()
    child.wait()
    return None


def stop_command(options: Options) -> int:
    console = Console()
    directory = DataDirectory(options.data)
    try:
        found = stop_other(directory)
    except TimeoutError:
        say(console, f"It does not end; see {directory.path}")
        return 1
    except PermissionError:
        say(console, "It belongs to another user, who has to stop it.")
        return 1
    say(console, "Stopped." if found else f"Nothing is running in {directory.path}.")
    return 0


def arguments(options: Options) -> list[str]:
    return [
        *("--variant", options.variant, "--port", str(options.port)),
        *("--data", str(options.data.absolute())),
        *(("--fresh",) if options.fresh else ()),
        *(word for part in options.without for word in ("--without", part)),
    ]


def say(console: Console, words: str) -> None:
    """As it is: to be copied, so neither wrapped nor coloured."""
    console.print(words, soft_wrap=True, highlight=False, markup=False)
