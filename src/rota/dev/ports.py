"""Finds free ports on 127.0.0.1."""

import random
import socket

# Below the range that Linux uses for outgoing connections: such a connection could otherwise take
# the port of a component while the component restarts.
LOWEST, HIGHEST = 20_000, 29_999


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        # As servers do, so that closing connections of an earlier run do not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def find(preferred: int | None = None, *, taken: set[int]) -> int:
    """Returns the preferred port if it is free, or another free port that is not in `taken`."""
    if preferred and preferred not in taken and is_free(preferred):
        return preferred
    while True:
        port = random.randint(LOWEST, HIGHEST)  # noqa: S311
        if port not in taken and is_free(port):
            return port
