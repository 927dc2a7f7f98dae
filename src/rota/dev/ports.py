"""Ports on 127.0.0.1 that nobody listens on."""

import random
import socket

# Below the range from which Linux takes ports for outgoing connections: one of
# those could otherwise take a part's port while the part is being restarted.
LOWEST, HIGHEST = 20_000, 29_999


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        # As servers do: connections of an earlier run that are closing do not count.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def find(wanted: int | None = None, *, besides: set[int]) -> int:
    """The wanted port if it is free, or else any that is and that is not in `besides`."""
    if wanted and wanted not in besides and is_free(wanted):
        return wanted
    while True:
        port = random.randint(LOWEST, HIGHEST)  # noqa: S311
        if port not in besides and is_free(port):
            return port
