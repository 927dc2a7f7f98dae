"""Runs one command, and stops it with all its processes when the parent process ends.

Standard input is a pipe to the parent. When the parent ends, even by `kill -9`, the pipe closes.
The guard then sends the command its stop signal, and after the grace period it kills every
process that is left. The line "kill" on the pipe skips the stop signal. The file runs with
`python -I -S`, so it can import only the standard library.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.05


def prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def exit_with_guard() -> None:
    """Makes Linux kill the command if the guard itself is killed.

    The signal depends on the thread that forked, and the guard has only one.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parents() -> Iterator[tuple[int, int]]:
    """Yields (process ID, parent's ID) for every process of this machine."""
    if not LINUX:
        with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE) as ps:  # noqa: S607
            for line in ps.stdout or ():
                pid, parent = map(int, line.split())
                if pid != ps.pid:
                    yield pid, parent
        return
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            # A process can end while its file is read.
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                # The name in parentheses can contain spaces and parentheses.
                state, ppid = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    yield int(entry), int(ppid)


def descendants() -> set[int]:
    """All children and their children. Process groups would miss some: PostgreSQL starts a new
    session for each child."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    queue = [os.getpid()]
    while queue:
        for pid in children.get(queue.pop(), ()):
            if pid not in found:
                found.add(pid)
                queue.append(pid)
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Guard:
    def __init__(self, command: list[str], stop_signal: int, grace_s: float) -> None:
        self.stop_signal = stop_signal
        self.grace_s = grace_s
        self.exit_code: int | None = None
        # Orphans of the command become children of the guard, not of init.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.wake, wake_writer = os.pipe()
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self.pid = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=exit_with_guard,
        ).pid

    def run(self) -> int:
        action = self.wait_for_action()
        # Only Linux has subreapers. Elsewhere orphans leave this process tree, so list them now.
        members = descendants()
        if action == "stop":
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, self.stop_signal)
            deadline = time.monotonic() + self.grace_s
            while self.exit_code is None and time.monotonic() < deadline:
                self.pause()
        self.kill(members)
        return self.exit_code if self.exit_code is not None else 1

    def wait_for_action(self) -> str:
        """Returns "stop", "kill", or "ended" if the command ended on its own."""
        while True:
            ready, _, _ = select.select([0, self.wake], [], [])
            if self.wake in ready and set(os.read(self.wake, 1024)) - {signal.SIGCHLD}:
                return "stop"
            self.reap()
            if self.exit_code is not None:
                return "ended"
            if 0 in ready:
                return "kill" if os.read(0, 16).startswith(b"kill") else "stop"

    def kill(self, members: set[int]) -> None:
        while True:
            self.reap()
            left = descendants() | {pid for pid in members if not LINUX and alive(pid)}
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.pause()

    def pause(self) -> None:
        """Waits until a child ends, for a short time at most."""
        if select.select([self.wake], [], [], POLL_S)[0]:
            os.read(self.wake, 1024)
        self.reap()

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.pid:
                    code = os.waitstatus_to_exitcode(ended[1])
                    self.exit_code = code if code >= 0 else 128 - code


if __name__ == "__main__":
    number, grace, *command = sys.argv[1:]
    try:
        guard = Guard(command, int(number), float(grace))
    except OSError as error:
        sys.exit(f"Cannot start {command[0]}: {error}")
    sys.exit(guard.run())
