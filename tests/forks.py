"""Services and workers as forks of one process that has loaded their modules.

Loading the modules takes seconds of processor time, and tests start many processes. A fork runs the
same program with an environment of its own, and can be killed. A test of the start itself uses a
new interpreter instead.

    python -m tests.forks FILENO

runs the process that forks. Each request on its socket has the files for the output, and names a
module with its arguments and its environment. It answers with the process ID, and with the status
when the process has ended. When the socket closes, it kills what still runs.
"""

import asyncio
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from tests import certificates

LARGEST = 1 << 20
# A process that should end by itself.
ENDS_WITHIN_S = 120
Message = dict[str, Any]


class Fork:
    """One of the processes, with what the tests use of `asyncio.subprocess.Process`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.ended = asyncio.Event()

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            # It may have ended just now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        await self.ended.wait()
        assert self.returncode is not None
        return self.returncode


class Forks:
    """The tests' side of the socket."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "tests.forks", str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
            )
        ours.setblocking(False)
        self._running: dict[int, Fork] = {}
        self._started: asyncio.Queue[Fork] = asyncio.Queue()
        self._turn = asyncio.Lock()
        asyncio.get_running_loop().add_reader(ours, self._read)

    async def start(self, *command: str, env: Mapping[str, str], output: tuple[int, int]) -> Fork:
        request = json.dumps({"command": command, "env": dict(env)}).encode()
        async with self._turn:
            socket.send_fds(self._socket, [request], output)
            # On a busy machine, loading the modules can take more than a minute.
            async with asyncio.timeout(180):
                return await self._started.get()

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := self._socket.recv(LARGEST):
                message = json.loads(data)
                pid = message["pid"]
                if "status" in message:
                    fork = self._running.pop(pid)
                    fork.returncode = message["status"]
                    fork.ended.set()
                else:
                    self._running[pid] = fork = Fork(pid)
                    self._started.put_nowait(fork)
            asyncio.get_running_loop().remove_reader(self._socket)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._process.wait()


_forks: Forks | None = None


async def forked(
    *command: str, env: Mapping[str, str], stdout: int | None = None, stderr: int = 2
) -> Fork:
    """A process that runs a module with these arguments. Without `stdout`, nothing keeps it."""
    global _forks
    if _forks is None:
        _forks = Forks()
    with open(os.devnull, "wb") as nowhere:
        output = (nowhere.fileno() if stdout is None else stdout, stderr)
        return await _forks.start(*command, env=env, output=output)


async def ended(*command: str, env: Mapping[str, str]) -> tuple[int, str, str]:
    """The exit code and the output of a process that ends by itself, as text."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = await forked(*command, env=env, stdout=output.fileno(), stderr=errors.fileno())
        try:
            async with asyncio.timeout(ENDS_WITHIN_S):
                code = await process.wait()
        finally:
            process.kill()
        output.seek(0)
        errors.seek(0)
        return code, output.read(), errors.read()


def close() -> None:
    global _forks
    if _forks is not None:
        _forks.close()
        _forks = None


def serve(channel: socket.socket) -> Message | None:
    """Forks for each request. Returns it in the new process, and None when the socket closes."""
    noticed, notice = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(notice, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: set[int] = set()
    while True:
        ready, _, _ = select.select([channel.fileno(), noticed], [], [])
        if noticed in ready:
            os.read(noticed, LARGEST)
            for pid in list(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    running.remove(pid)
                    answer = {"pid": pid, "status": os.waitstatus_to_exitcode(status)}
                    channel.send(json.dumps(answer).encode())
        if channel.fileno() in ready:
            data, files, _, _ = socket.recv_fds(channel, LARGEST, 2)
            if not data:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                return None
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(noticed)
                os.close(notice)
                for file, number in zip(files, (1, 2), strict=True):
                    os.dup2(file, number)
                    os.close(file)
                found: Message = json.loads(data)
                return found
            running.add(pid)
            for file in files:
                os.close(file)
            channel.send(json.dumps({"pid": pid}).encode())


def main() -> None:
    import rota.app
    import rota.worker  # noqa: F401
    import tests.runs.tools  # noqa: F401

    certificates.load_once()
    # What is loaded stays, so a fork need not look for garbage in it and copy it by that.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        request = serve(channel)
    if request is not None:
        os.environ.clear()
        os.environ.update(request["env"])
        module, *arguments = request["command"]
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
