"""Which metrics and labels an expression of Prometheus names. It knows as much as ours need."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

FUNCTIONS = frozenset(
    (
        "absent",
        "histogram_quantile",
        "increase",
        "max",
        "rate",
        "sum",
        "topk",
        "vector",
        "count",
        "label_replace",
        "last_over_time",
    )
)
KEYWORDS = frozenset(("and", "or", "unless", "by", "offset", "bool"))
_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<range>\[[^\]]*\])"""
    r"""|(?P<number>\d[\d.]*(?:e\d+)?[smhd]?\b)|(?P<name>[a-zA-Z_:][\w:]*)|(?P<mark>[-+*/(){},<>=!~]+?)"""
)


class NotUnderstood(Exception):
    """The expression uses something that these tests do not know."""


@dataclass
class Named:
    # Each metric with the labels that its selectors name.
    selected: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    # Labels by which results are grouped.
    grouped: set[str] = field(default_factory=set)
    # Metrics that are read as counters.
    rates: set[str] = field(default_factory=set)


def read(expression: str) -> Named:
    tokens = list(_tokens(expression.replace("$__rate_interval", "5m")))
    _check_parentheses(tokens)
    found, index = Named(), 0
    while index < len(tokens):
        kind, text = tokens[index]
        following = tokens[index + 1][1] if index + 1 < len(tokens) else ""
        if kind == "name" and text == "by":
            end = tokens.index(("mark", ")"), index)
            found.grouped |= {name for kind, name in tokens[index:end] if kind == "name"} - {"by"}
            index = end
        elif kind == "name" and text in FUNCTIONS and (following in ("(", "by")):
            pass
        elif kind == "name" and text not in KEYWORDS:
            labels, end = _selector(tokens, index)
            found.selected[text] |= labels
            if end < len(tokens) and tokens[end][0] == "range":
                found.rates.add(text)
            index = end - 1
        index += 1
    return found


def _tokens(expression: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise NotUnderstood(f"{expression[at : at + 20]!r} in {expression}")
        if match.lastgroup and match.lastgroup != "space":
            tokens.append((match.lastgroup, match.group()))
        at = match.end()
    return tokens


def _selector(tokens: list[tuple[str, str]], index: int) -> tuple[set[str], int]:
    """The labels in the braces behind a metric, and the index behind them."""
    if index + 1 >= len(tokens) or tokens[index + 1][1] != "{":
        return set(), index + 1
    end = tokens.index(("mark", "}"), index)
    return {text for kind, text in tokens[index + 1 : end] if kind == "name"}, end + 1


def _check_parentheses(tokens: list[tuple[str, str]]) -> None:
    depth = 0
    for _, text in tokens:
        depth += (text == "(") - (text == ")")
        if depth < 0:
            break
    if depth != 0:
        raise NotUnderstood("The parentheses do not match.")
