"""A part of the local stack: a server that runs as a guarded child of ours.

It is started, waited for with a real question, stopped or killed. It is never
started again unless somebody asks for it.
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
    # It ended by itself after it had been ready.
    DIED = "died"
    STOPPED = "stopped"


@dataclass(frozen=True)
class PartState:
    name: str
    status: Status
    log: Path
    port: int | None = None
    url: str | None = None
    detail: str = ""
    took_s: float | None = None


class PartError(Exception):
    def __init__(self, name: str, reason: str, log: Path) -> None:
        self.name = name
        self.reason = reason
        self.log = log
        super().__init__(f"{name}: {reason}")

    def __str__(self) -> str:
        """The reason, and what the part itself had to say last."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        except FileNotFoundError:
            lines = []
        said = "".join(f"\n  | {line}" for line in lines)
        return f"{self.name}: {self.reason}{said}\n  The whole log: {self.log}"


@dataclass(frozen=True)
class Site:
    """Where parts run, and what all of them need to know."""

    directory: DataDirectory
    durable: bool = True
    environ: Mapping[str, str] = field(default_factory=dict)
    on_change: Callable[[PartState], None] = lambda _: None


class Child:
    """A command under a guard, which ends it when this process ends."""

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
                # A session of its own: Ctrl-C is for us, and we decide the order.
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
    """Ours, without what would turn PostgreSQL's programs to another server."""
    inherited = site.directory.compiling(os.environ)
    return {k: v for k, v in inherited.items() if not k.startswith("PG")} | dict(extra)


async def run_to_end(
    site: Site, name: str, command: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Run a command that ends by itself; it must end well."""
    log = site.directory.log(name)
    child = await Child.start(site, log, command, child_environment(site, environment))
    try:
        code = await child.wait()
    finally:
        await child.stop()
    if code:
        raise PartError(name, f"ended with exit code {code}", log)


class Part:
    """Subclasses say what to run and how to ask whether it is ready."""

    name: ClassVar[str]
    # When this names a variable that is set, the part is somebody else's server,
    # at that address: never started or stopped, only asked.
    variable: ClassVar[str | None] = None
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    ready_within_s: ClassVar[float] = 25
    grace_s: ClassVar[float] = 10
    optional: ClassVar[bool] = False

    def __init__(self, site: Site) -> None:
        self.site = site
        self.port = 0
        # Something to know about it that is no fault, such as a port that was taken.
        self.note = ""
        self.external = site.environ.get(self.variable) if self.variable else None
        self.log = site.directory.log(self.name)
        self.log.write_bytes(b"")
        self.state = PartState(self.name, Status.WAITING, self.log)
        self._answer = ""
        self._child: Child | None = None
        self._watch: asyncio.Task[None] | None = None

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    async def check(self) -> None:
        """Ask the part something; raise while it does not answer."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """What has to be there before the part can start."""

    def missing(self) -> str | None:
        """Why it cannot be started here, and what to do about it."""
        return None

    def environment(self) -> Mapping[str, str]:
        return {}

    def shown_url(self) -> str | None:
        """An address for people, without secrets."""
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
            raise PartError(self.name, why, self.log)
        self._change(Status.STARTING, self.note)
        try:
            async with asyncio.timeout(self.ready_within_s):
                await self._begin()
        except (TimeoutError, PartError) as error:
            if child := self._let_go():
                await child.kill()
            if isinstance(error, PartError):
                why = error.reason
            else:
                why = f"was not ready within {self.ready_within_s:.0f} s{self._answer}"
            self._change(Status.FAILED, why)
            raise PartError(self.name, why, self.log) from None
        self._change(Status.READY, self.note, took_s=time.monotonic() - began)

    async def stop(self) -> None:
        if child := self._let_go():
            await child.stop()
            self._change(Status.STOPPED)

    async def kill(self) -> None:
        """End every process of the part at once, as a crash of the machine would."""
        if child := self._let_go():
            await child.kill()
            self._change(Status.STOPPED, "killed")

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _begin(self) -> None:
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
            self._watch = asyncio.create_task(self._notice_death(self._child))

    async def _until_ready(self) -> None:
        while True:
            try:
                await self.check()
                self._answer = ""
            except Exception as error:
                self._answer = f": {type(error).__name__} {error}"
            # Asked after the check: an answer may have come from a stranger.
            if self._child and self._child.exit_code is not None:
                raise PartError(
                    self.name, f"ended with exit code {self._child.exit_code}", self.log
                )
            if not self._answer:
                return
            await asyncio.sleep(POLL_S)

    async def _notice_death(self, child: Child) -> None:
        code = await child.wait()
        self._child = None
        self._change(Status.DIED, f"ended with exit code {code}")

    def _let_go(self) -> Child | None:
        if self._watch:
            self._watch.cancel()
        child, self._child, self._watch = self._child, None, None
        return child

    def _change(self, status: Status, detail: str = "", took_s: float | None = None) -> None:
        url = self.shown_url() if self.port or self.external else None
        self.state = PartState(self.name, status, self.log, self.port or None, url, detail, took_s)
        self.site.on_change(self.state)
