"""Single keys from a terminal, and a wake-up when something happened meanwhile."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

# What terminals send for keys without a character.
_SEQUENCES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "interrupt",
    "\x04": "interrupt",
}


class Keyboard:
    """Reads keys without waiting for Enter. Use it inside `raw`."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def wake(self) -> None:
        """Ends the wait of `keys`. Any thread can call it."""
        try:
            os.write(self._wake, b".")
        except BlockingIOError:
            # The wait ends anyway.
            return

    @contextmanager
    def raw(self) -> Iterator[None]:
        before = termios.tcgetattr(self._input)
        try:
            tty.setcbreak(self._input)
            attributes = termios.tcgetattr(self._input)
            # Ctrl-C is a key like others, so the screen is always restored.
            attributes[3] &= ~termios.ISIG
            termios.tcsetattr(self._input, termios.TCSADRAIN, attributes)
            yield
        finally:
            termios.tcsetattr(self._input, termios.TCSADRAIN, before)

    def keys(self, timeout_s: float) -> list[str]:
        """The keys that were pressed. Empty after `timeout_s` or a wake-up."""
        ready, _, _ = select.select([self._input, self._woken], [], [], timeout_s)
        if self._woken in ready:
            os.read(self._woken, 1024)
        if self._input not in ready:
            return []
        read = os.read(self._input, 4096)
        # The terminal is gone.
        return decoded(read.decode("utf-8", "replace")) if read else ["interrupt"]


def decoded(text: str) -> list[str]:
    """The names of special keys, and the characters of others."""
    found = []
    while text:
        sequence = max((s for s in _SEQUENCES if text.startswith(s)), key=len, default=text[0])
        found.append(_SEQUENCES.get(sequence, sequence))
        text = text[len(sequence) :]
    return found
