"""Every metric that a process exports: name, kind, labels and meaning from the code."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.reference import markdown
from tools.reference.markdown import code

SOURCE = Path(__file__).parents[2] / "src" / "rota"
KINDS = {"Counter": "counter", "Gauge": "gauge", "Histogram": "histogram", "TopAccounts": "counter"}
INTRODUCTION = """\
`/metrics` of `rota serve` and of `rota worker` has these metrics, in the format of Prometheus.
[Monitoring](../monitoring.md#metrics) groups them by subject and says how to read them. A
counter starts again at 0 with its process. A histogram has `_bucket`, `_count` and `_sum`."""


def pages() -> dict[str, str]:
    rows = [
        (code(name), kind, ", ".join(map(code, labels)), markdown.prose(meaning))
        for name, kind, labels, meaning in sorted(_declared())
    ]
    table = markdown.table(("metric", "kind", "labels", "meaning"), rows)
    return {"metrics.md": markdown.page("Metrics", INTRODUCTION, table)}


def _declared() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """The metrics that the modules create, without importing the modules."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            kind = KINDS.get(node.func.id)
            if kind is None or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            name, meaning, *rest = (_literal(argument) for argument in node.args)
            if node.func.id == "TopAccounts":
                labels: tuple[str, ...] = ("account",)
            else:
                labels = tuple(rest[0]) if rest else ()
            yield str(name), kind, labels, str(meaning)


def _literal(node: ast.expr) -> tuple[str, ...] | str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(str(_literal(element)) for element in node.elts)
    raise ValueError(f"The metric in line {node.lineno} is not written as constants.")
