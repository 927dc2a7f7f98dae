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


def find(wanted: int | None = None, *, besides: set[int]) -> int:
    """Returns the wanted port if it is free, or another free port that is not in `besides`."""
    if wanted and wanted not in besides and is_free(wanted):
        return wanted
    while True:
        port = random.randint(LOWEST, HIGHEST)  # noqa: S311
        if port not in besides and is_free(port):
            return port
