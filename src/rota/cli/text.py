"""Text of others on a terminal: it must not move the cursor, hide text or change colours.

A task's name or a model's answer can contain escape sequences, and characters that reverse the
order of what follows. They are shown by their numbers instead.
"""

import re
from datetime import UTC, datetime

# Control characters except tab and newline, and invisible characters that change how text reads.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """The text with everything that a terminal would obey shown as its number."""
    return _UNSAFE.sub(_shown, text.replace("\r\n", "\n"))


def safe_line(text: str) -> str:
    """The same on one line."""
    return safe(" ".join(text.split())) if text else ""


def safe_json(text: str) -> str:
    """JSON with the same values, in which a terminal finds nothing to obey."""
    return _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _shown(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found[0]):04X}⟩"


def moment(when: datetime | None) -> str:
    """A time in the time zone of this machine, to the minute."""
    return "" if when is None else when.astimezone().strftime("%Y-%m-%d %H:%M")


def ago(when: datetime, now: datetime | None = None) -> str:
    seconds = int(((now or datetime.now(UTC)) - when).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{max(0, seconds)} s"


def dollars(cents: int) -> str:
    return f"${cents / 100:,.2f}"


def counted(number: int, noun: str) -> str:
    """The number with its noun: `1 tool`, `2 tools`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
