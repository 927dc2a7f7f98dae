"""The addresses of a cell, as the host name in its URL says.

A look-up blocks a thread, for half a minute if the name server does not respond. Each cell has one
thread for one look-up at a time, so such a cell does not keep the threads that other cells need.
"""

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from rota.platform.cache import SharedCalls

# If a look-up takes longer or fails, the last known addresses are used, unless they are too old: by
# then they may belong to somebody else.
WITHIN_S, KNOWN_S = 0.5, 300.0


class Addresses:
    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cell_name")
        self._calls: SharedCalls[str, list[str]] = SharedCalls()
        self._known: list[str] = []
        self._known_at = 0.0

    async def find(self) -> list[str]:
        """Raises `OSError` if there is none."""
        if _is_address(self._host):
            return [self._host]
        look_up = self._calls.run(self._host, self._look_up)
        if not self._known or time.monotonic() - self._known_at >= KNOWN_S:
            return await look_up
        try:
            async with asyncio.timeout(WITHIN_S):
                return await look_up
        except socket.gaierror as error:
            if error.errno != socket.EAI_AGAIN:
                raise  # The name is gone, and the cell with it.
        except TimeoutError:
            pass
        return self._known

    def close(self) -> None:
        self._calls.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _look_up(self) -> list[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._thread, _resolve, self._host, self._port)
        self._known, self._known_at = found, time.monotonic()
        return found


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
