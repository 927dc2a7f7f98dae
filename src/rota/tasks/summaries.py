"""One sentence about what waits for a person, made by rule. A model cannot change its wording.

It shows only what the decision is about: the sealed call, and the template that the agent's version
has for the tool.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from rota.agents import templates
from rota.tasks.model import ReviewItem
from rota.tasks.questions import is_question

MAX_SUMMARY = 200

# A longer text is only counted in a list of arguments, and cut in a template.
_SHORT = 60
# In a template, values get shorter until the sentence fits.
_LENGTHS = (80, 40, 20)
# No more arguments fit in a summary.
_MAX_ARGUMENTS = 50
_MAX_LISTED = 3
_MAX_NAME = 40
_MAX_SUM = Decimal(10) ** 18

# A value of these characters cannot be mistaken for a part of the sentence.
_WORD = re.compile(r"[\w.@:/#+-]+")
# So that a value cannot end its own quotation marks.
_QUOTES = str.maketrans("“”", '""')
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Characters that show nothing although they count as letters, marks or symbols.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


class _Absent(Exception):
    """The call does not have an argument that the template uses."""


def of_item(item: ReviewItem, arguments: Mapping[str, Any]) -> str:
    """Describes an item of a review. `arguments` are the sealed ones."""
    if item["tool"] is None:
        return "Accept the result"
    if is_question(item):
        # The question is shown whole.
        return "Answer a question"
    template = item.get("describe")
    if template is not None:
        try:
            return _filled(template, arguments)
        except _Absent:
            pass
    title = item.get("toolTitle")
    named = plain(title, _SHORT) if isinstance(title, str) else ""
    return _listed(named or _readable(plain(item["tool"], _SHORT)), arguments)


def of_review(
    sealed: Mapping[str, Any], gate: str | None, task: str, summaries: Sequence[str]
) -> str | None:
    """Describes a review as a whole. `task` is a name; `summaries` are those of the items."""
    if gate == "output":
        return f"Accept the result of {_text(task, 100)}"
    if "work" in sealed:
        work = sealed["work"]
        most = f"${work['budgetCents'] / 100:.2f}"
        return f"Start the task {_text(work['name'], 100)}, which can cost at most {most}"
    if "texts" in sealed:
        return f"Approve the task {_text(sealed['texts']['name'], 100)}"
    if len(summaries) < 2:
        return summaries[0] if summaries else None
    return _cut(f"{len(summaries)} calls: {'; '.join(summaries)}", MAX_SUMMARY)


def plain(text: str, length: int) -> str:
    """The text in one line. Characters that are not visible become marks like ⟨U+202E⟩."""
    folded = " ".join(text.split())
    return _cut("".join(map(_visible, folded[: length + 1])), length)


def _visible(character: str) -> str:
    if character == " ":
        return character
    hidden = unicodedata.category(character)[0] == "C" or character in _BLANK
    # These variation selectors do nothing but choose between a text and an emoji.
    selector = unicodedata.name(character, "").startswith("VARIATION SELECTOR")
    if hidden or (selector and character not in "\ufe0e\ufe0f"):
        return f"⟨U+{ord(character):04X}⟩"
    return character


def _filled(template: str, arguments: Mapping[str, Any]) -> str:
    sentence = ""
    for length in _LENGTHS:
        sentence = "".join(
            text + (_value(path, arguments, length) if path else "")
            for text, path in templates.split(template)
        )
        if len(sentence) <= MAX_SUMMARY:
            break
    return _cut(sentence, MAX_SUMMARY)


def _value(path: tuple[str, ...], arguments: Mapping[str, Any], length: int) -> str:
    found: Any = arguments
    for number, name in enumerate(path, 1):
        if isinstance(found, Mapping):
            found = found.get(name)
        elif name == "length" and number == len(path) and isinstance(found, list | str):
            return f"{len(found):,}"
        elif isinstance(found, list) and path[number:] == ("sum",):
            return _sum(found, name)
        else:
            raise _Absent
    if found is None:
        raise _Absent
    if isinstance(found, str):
        return _text(found, length)
    unit = path[-1] if isinstance(found, list) else "fields"
    return _scalar(found) or _short_list(found, length) or _count(len(found), unit)


def _sum(rows: Sequence[Any], name: str) -> str:
    """The sum of a field of all elements, exact."""
    values = [row.get(name) if isinstance(row, Mapping) else None for row in rows]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in values):
        raise _Absent
    total = sum((Decimal(json.dumps(each)) for each in values), Decimal(0))
    if not total.is_finite() or abs(total) > _MAX_SUM:
        raise _Absent
    if all(isinstance(each, int) for each in values):
        return f"{total:,f}"
    # Amounts have two decimals, unless more are needed.
    return f"{total:,.2f}" if total == round(total, 2) else f"{total.normalize():,f}"


def _listed(name: str, arguments: Mapping[str, Any]) -> str:
    """The name and as many arguments as fit."""
    parts = list(islice(_parts(arguments), _MAX_ARGUMENTS))
    if not parts:
        return name
    total = len(arguments)
    for shown in range(len(parts), 0, -1):
        more = f" and {total - shown} more" if shown < total else ""
        sentence = f"{name} ({', '.join(parts[:shown])}{more})"
        if len(sentence) <= MAX_SUMMARY:
            return sentence
    return f"{name} ({_count(total, 'arguments')})"


def _parts(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Short values come first, because the others are only counted."""
    counted: dict[str, Any] = {}
    for key, value in arguments.items():
        shown = _scalar(value) or _short_list(value, _SHORT)
        if isinstance(value, str) and len(value) <= _SHORT:
            shown = _text(value, _SHORT)
        if shown:
            yield f"{_text(key, _MAX_NAME)}: {shown}"
        else:
            counted[key] = value
    for key, value in counted.items():
        name = _text(key, _MAX_NAME)
        if isinstance(value, list):
            yield _count(len(value), name)
        else:
            unit = "characters" if isinstance(value, str) else "fields"
            yield f"{name}: {_count(len(value), unit)}"


def _scalar(value: Any) -> str:
    """A number, true, false or none. Empty for everything else."""
    if value is None:
        return "none"
    if isinstance(value, bool | int | float):
        return _cut(json.dumps(value), 40)
    return ""


def _short_list(value: Any, length: int) -> str:
    """The elements of a list of few short values. Empty for everything else."""
    if not isinstance(value, list) or not 1 <= len(value) <= _MAX_LISTED:
        return ""
    if any(isinstance(each, list | dict) for each in value):
        return ""
    shown = [_text(each, length) if isinstance(each, str) else _scalar(each) for each in value]
    joined = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return joined if len(joined) <= length else ""


def _count(number: int, things: str) -> str:
    """`6 invoices`, `1 invoice`."""
    if number == 1:
        things = re.sub(r"(?<=[a-z])s$", "", re.sub(r"ies$", "y", things))
    return f"{number:,} {things}"


def _text(text: str, length: int) -> str:
    """The text as a value: in quotation marks unless it is a single word."""
    shown = plain(text, length)
    if _WORD.fullmatch(shown):
        return shown
    return f"“{shown.translate(_QUOTES)}”"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _readable(name: str) -> str:
    """`reply_to_ticket` and `replyToTicket` as `Reply to ticket`."""
    words = re.sub(r"[_.\s-]+", " ", _CAMEL.sub(" ", name)).strip()
    words = " ".join(
        word.lower() if word.istitle() and number else word
        for number, word in enumerate(words.split())
    )
    return words[:1].upper() + words[1:]
