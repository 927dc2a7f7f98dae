"""A component of the local stack: a server that runs as a guarded child process.

A component can be started, stopped and killed. It counts as started when it responds to a real
request. `Stack.supervise` restarts it after a crash.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from rota.dev import guard
from rota.dev.directory import DataDirectory

POLL_S = 0.05
LAST_LINES = 15


class Status(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    DONE = "done"
    MISSING = "not installed"
    # It did not start.
    FAILED = "failed"
    # It exited on its own after it was ready.
    CRASHED = "crashed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ComponentState:
    name: str
    status: Status
    log: Path
    port: int | None = None
    url: str | None = None
    detail: str = ""
    took_s: float | None = None


class ComponentError(Exception):
    def __init__(self, name: str, reason: str, log: Path) -> None:
        self.name = name
        self.reason = reason
        self.log = log
        super().__init__(f"{name}: {reason}")

    def __str__(self) -> str:
        """The reason and the last lines of the log."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        except FileNotFoundError:
            lines = []
        tail = "".join(f"\n  | {line}" for line in lines)
        return f"{self.name}: {self.reason}{tail}\n  Full log: {self.log}"


@dataclass(frozen=True)
class Site:
    """What all components share."""

    directory: DataDirectory
    durable: bool = True
    environ: Mapping[str, str] = field(default_factory=dict)
    on_change: Callable[[ComponentState], None] = lambda _: None


class Child:
    """A command under a guard, which stops the command when this process ends."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(
        cls,
        site: Site,
        log: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        stop_signal: signal.Signals = signal.SIGTERM,
        grace_s: float = 10,
    ) -> "Child":
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                guard.__file__,
                str(int(stop_signal)),
                str(grace_s),
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=environment,
                # A new session: Ctrl-C must reach only this process, which stops all in order.
                start_new_session=True,
                pass_fds=(site.directory.lock,),
            )
        return cls(process)

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def kill(self) -> None:
        assert self._process.stdin is not None
        if self.exit_code is None:
            self._process.stdin.write(b"kill\n")
        await self.stop()


def child_environment(site: Site, extra: Mapping[str, str]) -> dict[str, str]:
    """This environment without PG* variables, which would point to another server."""
    inherited = site.directory.compiling(os.environ)
    return {k: v for k, v in inherited.items() if not k.startswith("PG")} | dict(extra)


async def run_to_end(
    site: Site, name: str, command: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Runs a command to its end. Raises ComponentError if it fails."""
    log = site.directory.log(name)
    child = await Child.start(site, log, command, child_environment(site, environment))
    try:
        code = await child.wait()
    finally:
        await child.stop()
    if code:
        raise ComponentError(name, f"exited with code {code}", log)


class Component:
    """Subclasses define the command and the readiness check."""

    name: ClassVar[str]
    # If this environment variable is set, the component is an external server at that address.
    # The stack checks it, but never starts or stops it.
    variable: ClassVar[str | None] = None
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    # A busy machine needs more than half a minute to load the modules of one of them.
    ready_within_s: ClassVar[float] = 90
    grace_s: ClassVar[float] = 10
    optional: ClassVar[bool] = False

    def __init__(self, site: Site) -> None:
        self.site = site
        self.port = 0
        # Shown with the state, for example that the preferred port is in use.
        self.note = ""
        self.external = site.environ.get(self.variable) if self.variable else None
        self.log = site.directory.log(self.name)
        self.log.write_bytes(b"")
        self.state = ComponentState(self.name, Status.WAITING, self.log)
        self._problem = ""
        self._child: Child | None = None
        self._watch: asyncio.Task[None] | None = None

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    async def check(self) -> None:
        """Sends a request. Raises an exception while the component is not ready."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """Creates what the component needs before it can start."""

    def missing(self) -> str | None:
        """The reason why it cannot start here and what to do, or None."""
        return None

    def environment(self) -> Mapping[str, str]:
        return {}

    def display_url(self) -> str | None:
        """The address to print, without secrets."""
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self.state.status is Status.READY

    async def start(self) -> None:
        began = time.monotonic()
        if self.external is None and (why := self.missing()):
            self._change(Status.MISSING, why)
            if self.optional:
                return
            raise ComponentError(self.name, why, self.log)
        self._change(Status.STARTING, self.note)
        try:
            async with asyncio.timeout(self.ready_within_s):
                await self._launch()
        except (TimeoutError, ComponentError) as error:
            if child := self._detach():
                await child.kill()
            if isinstance(error, ComponentError):
                why = error.reason
            else:
                why = f"was not ready within {self.ready_within_s:.0f} s{self._problem}"
            self._change(Status.FAILED, why)
            raise ComponentError(self.name, why, self.log) from None
        self._change(Status.READY, self.note, took_s=time.monotonic() - began)

    async def stop(self) -> None:
        if child := self._detach():
            await child.stop()
            self._change(Status.STOPPED)

    async def kill(self) -> None:
        """Kills every process of the component, like a crash of the machine."""
        if child := self._detach():
            await child.kill()
            self._change(Status.STOPPED, "killed")

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _launch(self) -> None:
        if self.external is None:
            await self.prepare()
            self._child = await Child.start(
                self.site,
                self.log,
                self.command(),
                child_environment(self.site, self.environment()),
                stop_signal=self.stop_signal,
                grace_s=self.grace_s,
            )
        await self._until_ready()
        if self._child:
            self._watch = asyncio.create_task(self._report_crash(self._child))

    async def _until_ready(self) -> None:
        while True:
            try:
                await self.check()
                self._problem = ""
            except Exception as error:
                self._problem = f": {type(error).__name__} {error}"
            # Tested after the check, because another process could have answered on this port.
            if self._child and self._child.exit_code is not None:
                raise ComponentError(
                    self.name, f"exited with code {self._child.exit_code}", self.log
                )
            if not self._problem:
                return
            await asyncio.sleep(POLL_S)

    async def _report_crash(self, child: Child) -> None:
        code = await child.wait()
        self._child = None
        self._change(Status.CRASHED, f"exited with code {code}")

    def _detach(self) -> Child | None:
        if self._watch:
            self._watch.cancel()
        child, self._child, self._watch = self._child, None, None
        return child

    def _change(self, status: Status, detail: str = "", took_s: float | None = None) -> None:
        url = self.display_url() if self.port or self.external else None
        self.state = ComponentState(
            self.name, status, self.log, self.port or None, url, detail, took_s
        )
        self.site.on_change(self.state)
