"""The command `rota dev`. Its work is in `run.py`, its output in `display.py`.

Both are imported when the command runs: the whole command line imports this module.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rota.dev.directory import LOG, DataDirectory, DirectoryError, DirectoryInUseError
from rota.dev.model_choice import Found, ModelName, ModelUnavailable, choose

if TYPE_CHECKING:
    from rich.console import Console

    from rota.dev.run import Options

DETACHED_READY_WITHIN_S = 120.0


class VariantName(StrEnum):
    A = "a"
    B = "b"


class OptionalComponent(StrEnum):
    """A component that `--without` can leave out."""

    MODEL = "model"
    IDP = "idp"
    STRIPE = "stripe"
    DEMO = "demo"


def dev(
    variant: Annotated[VariantName, typer.Option(help="The variant to run.")] = VariantName.A,
    port: Annotated[
        int,
        typer.Option(
            min=1024,
            max=65_000,
            help="The port of the service. The other components use the ports after it.",
        ),
    ] = 8080,
    data: Annotated[Path, typer.Option(help="The directory for all data and logs.")] = Path(
        ".rota"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete existing data first.")] = False,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach", help="Run in the background. The command returns when everything is ready."
        ),
    ] = False,
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop the `rota dev` that uses --data.")
    ] = False,
    model: Annotated[
        ModelName | None,
        typer.Option(
            help="The model that agents use. Without it, `rota dev` asks on a terminal if it finds"
            " a key or Ollama, and else uses the demonstration model."
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Add a company with a month of history and open approvals."),
    ] = False,
    without: Annotated[
        list[OptionalComponent] | None,
        typer.Option(help="Leave out this component. Can be repeated."),
    ] = None,
) -> None:
    """Run everything on this machine: database, queues, model, sign-in and the service.

    Examples: rota dev --demo, rota dev --detach, rota dev --stop, rota dev --model ollama
    """
    from rich.console import Console

    from rota.dev.run import Options

    options = Options(data, variant, port, fresh, tuple(without or ()), demo=demo)
    if stop:
        raise typer.Exit(stop_command(options))
    try:
        options = replace(options, model=choose_model(model, demo=demo))
    except ModelUnavailable as error:
        print_plain(Console(stderr=True), str(error))
        raise typer.Exit(2) from None
    if detach:
        code = detach_command(options, [sys.executable, "-m", "rota.dev"])
    else:
        code = run_command(options)
    raise typer.Exit(code)


def choose_model(asked: ModelName | None, *, demo: bool) -> str:
    """The model to use. Asks only a person at a terminal."""
    ask = ask_person if sys.stdin.isatty() else None
    return choose(asked, os.environ, demo_data=demo, ask=ask)


def ask_person(found: list[Found]) -> ModelName:
    from rich.console import Console
    from rich.prompt import IntPrompt

    console = Console()
    options = [
        Found(ModelName.DEMO, "the demonstration model: scripted, free, no key"),
        *found,
    ]
    print_plain(console, "Which model should the agents use?")
    for number, each in enumerate(options, 1):
        print_plain(console, f"  {number}  {each.name:<10} {each.reason}")
    numbers = [str(number + 1) for number in range(len(options))]
    choice = IntPrompt.ask("Number", console=console, choices=numbers, default=1)
    return options[choice - 1].name


def run_command(options: "Options") -> int:
    from rich.console import Console

    from rota.dev.display import display
    from rota.dev.processes import ComponentError
    from rota.dev.run import run, until_signalled

    console = Console()
    if os.environ.get("ROTA_ENV") == "production":
        console.print(
            "ROTA_ENV is production. `rota dev` does not check who signs in, so it does not start."
        )
        return 1

    async def main() -> None:
        with display(console) as table:
            work = run(options, os.environ, table.changed, lambda text: print_plain(console, text))
            await until_signalled(asyncio.create_task(work), console.show_cursor)

    try:
        asyncio.run(main())
    except (ComponentError, DirectoryError) as error:
        print_plain(console, str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def detach_command(options: "Options", program: list[str]) -> int:
    from rich.console import Console

    console = Console()
    directory = DataDirectory(options.data)
    try:
        directory.adopt()
        if directory.in_use() and (running := directory.running()) and running.alive:
            raise DirectoryInUseError(directory.path, running)
    except DirectoryError as error:
        print_plain(console, str(error))
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
        greeting = _until_ready(directory, child)
    except KeyboardInterrupt:
        child.terminate()
        child.wait()
        return 130
    if greeting is None:
        print_plain(console, log.read_text(errors="replace").rstrip())
        return 1
    print_plain(console, f"{greeting}\n\nStop it with: rota dev --stop --data {options.data}")
    return 0


def _until_ready(directory: DataDirectory, child: subprocess.Popen[bytes]) -> str | None:
    """Returns the greeting once the child is ready, or None if the child exits first."""
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


def stop_command(options: "Options") -> int:
    from rich.console import Console

    from rota.dev.run import stop_other

    console = Console()
    directory = DataDirectory(options.data)
    try:
        found = stop_other(directory)
    except TimeoutError:
        print_plain(console, f"`rota dev` did not stop. See the logs in {directory.path}.")
        return 1
    except PermissionError:
        print_plain(console, "This `rota dev` belongs to another user. Only that user can stop it.")
        return 1
    print_plain(console, "Stopped." if found else f"Nothing is running in {directory.path}.")
    return 0


def arguments(options: "Options") -> list[str]:
    return [
        f"--variant={options.variant}",
        f"--port={options.port}",
        f"--data={options.data.absolute()}",
        *(["--fresh"] if options.fresh else []),
        *(["--demo"] if options.demo else []),
        # Without it, the child makes the same choice again: from the same environment.
        *([f"--model={options.model}"] if options.model in set(ModelName) else []),
        *(f"--without={name}" for name in options.without),
    ]


def print_plain(console: "Console", text: str) -> None:
    """Prints without wrapping or colours, so the text can be copied."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)
