"""Finds free ports on 127.0.0.1."""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Below the range that Linux uses for outgoing connections: such a connection could otherwise take
# the port of a component while the component restarts.
LOWEST, HIGHEST = 20_000, 29_999
# Visits every port of the range before it repeats one, and comes back to the neighbours of a port
# late: `rota dev --port` uses the ports next to its own.
STRIDE = 6_181


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        # As servers do, so that closing connections of an earlier run do not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def find(preferred: int | None = None, *, taken: set[int] | None = None) -> int:
    """Returns the preferred port if it is free, or another free port that is not in `taken`."""
    taken = taken or set()
    if preferred and preferred not in taken and is_free(preferred):
        return preferred
    return next(port for port in _in_turn() if port not in taken and is_free(port))


def _in_turn() -> Iterator[int]:
    """Gives each port to one caller, also of other processes, until all others had their turn.

    A port is free until its server has started, so stacks that start at the same time could
    otherwise choose the same one.
    """
    path = Path(tempfile.gettempdir()) / f"rota-ports-{os.getuid()}"
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            last = file.read()
            start = int(last) if last.isdecimal() else random.randint(LOWEST, HIGHEST)  # noqa: S311
            port = LOWEST + (start - LOWEST + STRIDE) % (HIGHEST - LOWEST + 1)
            file.seek(0)
            file.write(str(port))
        yield port
