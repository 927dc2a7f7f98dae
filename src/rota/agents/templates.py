"""Templates of the sentences that describe tool calls: text with placeholders for arguments.

`{ticketId}` is an argument, `{customer.name}` a field of an object, `{invoices.length}` the length
of a list or a text, and `{invoices.amountUsd.sum}` the sum of a field of all objects of a list.
There is nothing else: no other braces, no format, no code.
"""

import re
from collections.abc import Iterator

MAX_TEMPLATE = 150

_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\}")


def is_template(text: str) -> bool:
    """Whether every brace of the text belongs to a placeholder."""
    return not set("{}") & set(_PLACEHOLDER.sub("", text))


def split(template: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of a template: a text, and the path of the argument after it.

    The path of the last part is empty.
    """
    end = 0
    for match in _PLACEHOLDER.finditer(template):
        yield template[end : match.start()], tuple(match[1].split("."))
        end = match.end()
    yield template[end:], ()


def arguments_of(template: str) -> list[str]:
    """The names of the arguments that the template uses."""
    return list(dict.fromkeys(path[0] for _, path in split(template) if path))
