"""Single keys from a terminal, and a wake-up when something happened meanwhile."""

import codecs
import os
import re
import select
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

# What terminals send for keys without a character. Other sequences are keys that do nothing here.
_NAMES = {
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
# A function key of a Linux console, a control sequence, a key of a keypad, a key with Alt. Some
# terminals send Alt as a second Esc.
_SEQUENCE = re.compile(r"\x1b{1,2}(\[\[.|\[[0-?]*[ -/]*[@-Z\\-~]|O.|[^\[O\x1b])", re.DOTALL)
# The beginning of one.
_BEGINNING = re.compile(r"\x1b{1,2}(\[\[?|\[[0-?]*[ -/]*|O)?")
# How long the rest of a sequence can take. After that, it was the Esc key.
REST_S = 0.05


class Keyboard:
    """Reads keys without waiting for Enter. Use it inside `raw`."""

    def __init__(self, source: int | None = None) -> None:
        self._input = sys.stdin.fileno() if source is None else source
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._forget()

    def wake(self) -> None:
        """Ends the wait of `key`. Any thread and any signal handler can call it."""
        try:
            os.write(self._wake, b".")
        except BlockingIOError:
            # The wait ends anyway.
            return

    @contextmanager
    def raw(self) -> Iterator[None]:
        """Keys come one by one. Ctrl-C is still a signal, so it also ends a request that hangs."""
        import termios
        import tty

        self._usual = termios.tcgetattr(self._input)
        try:
            tty.setcbreak(self._input)
            attributes = termios.tcgetattr(self._input)
            # These would leave the screen as it is.
            for key in (termios.VSUSP, termios.VQUIT):
                attributes[6][key] = bytes([os.fpathconf(self._input, "PC_VDISABLE")])
            termios.tcsetattr(self._input, termios.TCSADRAIN, attributes)
            yield
        finally:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._usual)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside `raw`: the terminal as other programs expect it."""
        import termios

        now = termios.tcgetattr(self._input)
        try:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._usual)
            yield
        finally:
            termios.tcsetattr(self._input, termios.TCSAFLUSH, now)

    def forget(self) -> None:
        """Drops the keys that were pressed but not read: they were not for what is shown now."""
        import termios

        termios.tcflush(self._input, termios.TCIFLUSH)
        self._forget()

    def _forget(self) -> None:
        self._keys: deque[str] = deque()
        self._rest = ""
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def key(self, timeout_s: float) -> str | None:
        """The next key. None after `timeout_s` or a wake-up."""
        if not self._keys:
            ready, _, _ = select.select([self._input, self._woken], [], [], timeout_s)
            if self._woken in ready:
                os.read(self._woken, 1024)
            if self._input in ready:
                self._read()
        return self._keys.popleft() if self._keys else None

    def _read(self) -> None:
        is_ready = True
        while is_ready:
            read = os.read(self._input, 4096)
            if not read:
                # The terminal is gone.
                self._keys.append("interrupt")
                return
            found, self._rest = decoded(self._rest + self._utf8.decode(read))
            self._keys.extend(found)
            if not self._rest:
                return
            is_ready = bool(select.select([self._input], [], [], REST_S)[0])
        if not self._rest.strip("\x1b"):
            self._keys.append("escape")
        self._rest = ""


def decoded(text: str) -> tuple[list[str], str]:
    """The names of special keys and the characters of others, and what is not complete yet."""
    found = []
    while text:
        if text[0] != "\x1b":
            found.append(_NAMES.get(text[0], text[0]))
            text = text[1:]
        elif whole := _SEQUENCE.match(text):
            if whole[0] in _NAMES:
                found.append(_NAMES[whole[0]])
            text = text[whole.end() :]
        elif _BEGINNING.fullmatch(text):
            break
        else:
            # Not a sequence: Esc several times, or something that no terminal sends.
            beginning = _BEGINNING.match(text)
            assert beginning is not None
            found += ["escape"] if not beginning[1] else []
            text = text[beginning.end() :]
    return found, text
