"""Runs one command and makes sure that nothing of it outlives whoever started us.

Standard input is a pipe whose other end only the starter holds. When it closes,
for whatever reason (`kill -9` included), the command is stopped: first as it
likes to be, then by force, with every process it left behind. A line "kill"
skips the first step. Run as a plain file by `python -I -S`, so it must import
nothing but the standard library.
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


def die_with_the_guard() -> None:
    """The last resort, should somebody `kill -9` the guard itself.

    The signal follows the thread that forked; the guard has only one.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parents() -> Iterator[tuple[int, int]]:
    """(process, its parent) for every process of this machine."""
    if not LINUX:
        with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE) as ps:  # noqa: S607
            for line in ps.stdout or ():
                pid, parent = map(int, line.split())
                if pid != ps.pid:
                    yield pid, parent
        return
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            # A process may end while we look at it.
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                # The name in parentheses may itself hold spaces and parentheses.
                state, ppid = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    yield int(entry), int(ppid)


def descendants() -> set[int]:
    """Children of ours, and theirs; PostgreSQL gives each of its own a new session,
    so process groups would not find them."""
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
            preexec_fn=die_with_the_guard,
        ).pid

    def run(self) -> int:
        order = self.wait_for_order()
        # Without a subreaper (not Linux) orphans leave our tree, so remember them now.
        members = descendants()
        if order == "stop":
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, self.stop_signal)
            deadline = time.monotonic() + self.grace_s
            while self.exit_code is None and time.monotonic() < deadline:
                self.pause()
        self.kill(members)
        return self.exit_code if self.exit_code is not None else 1

    def wait_for_order(self) -> str:
        """ "ended" by itself, "stop" nicely, or "kill"."""
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
        """Until a child ends, or a moment has passed."""
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
        sys.exit(f"{command[0]} does not start: {error}")
    sys.exit(guard.run())
