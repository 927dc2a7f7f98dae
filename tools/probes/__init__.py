"""Measures which lines and branches of Rota run, at a fraction of the cost of tracing.

Tracing calls a function for each line that runs, also in libraries, and Python 3.11 then runs
nothing at its full speed. Here, each statement of Rota itself has a probe before it, which sets one
byte of a file that all processes map into their memory. So the file is the union of every process
of every lane, a process that is killed loses nothing, and there is nothing to combine.

    python -m tools.probes prepare
    PYTHONPATH="$PWD/tools/probes/hook" pytest ...
    python -m tools.probes report

The first compiles src/rota with probes into dist/probes, the second runs with these modules, and
the third writes `.coverage` for `coverage report`. So coverage.py decides what counts as a line or
a branch, and what is excluded, and `report` fails if it knows one that has no probe.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coverage.python import PythonFileReporter

from tools.probes.hook.sitecustomize import NAME

Loop = ast.For | ast.AsyncFor | ast.While
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Branch:
    """A line from which the program goes on in one of two places."""

    line: int
    # Where the first of them begins. Coverage.py knows the other.
    target: int
    # Each is taken if one of its probes has run.
    taken: list[int]
    other: list[int]


@dataclass
class Probes:
    """What the bytes of one module mean."""

    # The number of the first one, and of the one after the last.
    start: int
    end: int = 0
    # Lines that have run if the probe has.
    lines: dict[int, list[int]] = field(default_factory=dict)
    branches: list[Branch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.end = self.start

    def add(self, *lines: int) -> int:
        number = self.end
        self.end += 1
        self.lines[number] = list(lines)
        return number


def first_line(statement: ast.stmt) -> int:
    if isinstance(statement, Definition) and statement.decorator_list:
        return statement.decorator_list[0].lineno
    return statement.lineno


def lines_of(statement: ast.stmt) -> list[int]:
    """The lines that begin to run with this statement, without what is inside it."""
    if isinstance(statement, Definition):
        return [*(d.lineno for d in statement.decorator_list), statement.lineno]
    return [statement.lineno]


def matches_all(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return matches_all(pattern.patterns[-1])
    return isinstance(pattern, ast.MatchAs) and (
        pattern.pattern is None or matches_all(pattern.pattern)
    )


class Prober:
    """Adds probes to the statements of one module."""

    def __init__(self, start: int) -> None:
        self.probes = Probes(start)

    def block(self, statements: Sequence[ast.stmt]) -> tuple[list[ast.stmt], int]:
        """The statements with their probes, and the number of the first probe."""
        result: list[ast.stmt] = []
        late: list[ast.stmt] = []
        numbers = []
        for place, statement in enumerate(statements):
            numbers.append(self.probes.add(*lines_of(statement)))
            probe = _set(numbers[-1], statement)
            if _comes_first(statement, place):
                result.append(statement)
                late.append(probe)
            else:
                result += [*late, probe, statement]
                late = []
            self._inside(statement)
        return result + late, numbers[0]

    def _inside(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.If | Loop):
            self._fork(statement)
        elif isinstance(statement, ast.Match):
            self._match(statement)
        elif isinstance(statement, ast.Try | ast.TryStar):
            statement.body, _ = self.block(statement.body)
            for handler in statement.handlers:
                self._handler(handler)
            for name in ("orelse", "finalbody"):
                if block := getattr(statement, name):
                    setattr(statement, name, self.block(block)[0])
        elif isinstance(statement, Definition | ast.With | ast.AsyncWith):
            statement.body, _ = self.block(statement.body)

    def _fork(self, statement: ast.If | Loop) -> None:
        target = first_line(statement.body[0])
        statement.body, taken = self.block(statement.body)
        if statement.orelse:
            statement.orelse, other = self.block(statement.orelse)
        else:
            other = self.probes.add()
            statement.orelse = [_set(other, statement)]
        self.probes.branches.append(Branch(statement.lineno, target, [taken], [other]))

    def _match(self, statement: ast.Match) -> None:
        last = statement.cases[-1]
        complete = last.guard is None and matches_all(last.pattern)
        found = []
        for case in statement.cases:
            target = first_line(case.body[0])
            case.body, taken = self.block(case.body)
            found.append((case.pattern.lineno, target, taken))
        after = []
        if not complete:
            # No pattern matches.
            after = [self.probes.add()]
            anything = ast.copy_location(ast.MatchAs(), statement)
            statement.cases.append(ast.match_case(anything, body=[_set(after[0], statement)]))
        # A pattern is tried if it matches, or if one after it is tried.
        for line, target, taken in reversed(found):
            for number in (taken, *after):
                self.probes.lines[number].append(line)
            if after:
                self.probes.branches.append(Branch(line, target, [taken], list(after)))
            after.append(taken)

    def _handler(self, handler: ast.ExceptHandler) -> None:
        if handler.type is None:
            handler.body, number = self.block(handler.body)
            self.probes.lines[number].append(handler.lineno)
            return
        # The line runs when its type is looked up, even if that is not the type of the exception.
        number = self.probes.add(handler.lineno)
        probe = _parsed(f"({NAME}.__setitem__({number}, 1), None)[1]", handler.type)
        assert isinstance(probe, ast.Expr)
        assert isinstance(probe.value, ast.Subscript)
        assert isinstance(probe.value.value, ast.Tuple)
        probe.value.value.elts[1] = handler.type
        handler.type = probe.value
        handler.body, _ = self.block(handler.body)


def _comes_first(statement: ast.stmt, place: int) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return (
        place == 0
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _set(number: int, place: ast.AST) -> ast.stmt:
    return _parsed(f"{NAME}[{number}] = 1", place)


def _parsed(text: str, place: ast.AST) -> ast.stmt:
    """A statement at the place of another, so that tracebacks are the same as without probes."""
    statement = ast.parse(text).body[0]
    for node in ast.walk(statement):
        ast.copy_location(node, place)
    return statement


def instrument(source: bytes, path: str, start: int) -> tuple[ast.Module, Probes]:
    """The module with its probes, which have the numbers from `start`."""
    tree = ast.parse(source, path)
    prober = Prober(start)
    if tree.body:
        tree.body, _ = prober.block(tree.body)
    return tree, prober.probes


def arcs(
    probes: Probes, ran: Callable[[int], object], reporter: PythonFileReporter
) -> set[tuple[int, int]]:
    """What has run, as coverage.py stores it: a line with itself, or with the next one.

    Where a line has one successor, coverage.py needs the line only.
    """
    successors = defaultdict(set)
    for line, after in reporter.arcs():
        successors[line].add(after)
    expected = {line for line, exits in reporter.exit_counts().items() if exits > 1}
    found = {(n, n) for number, lines in probes.lines.items() if ran(number) for n in lines}
    executed = reporter.translate_lines(line for line, _ in found)
    for branch in probes.branches:
        if branch.line in expected:
            expected.remove(branch.line)
            (target,) = reporter.translate_lines([branch.target])
            (other,) = successors[branch.line] - {target}
            if any(map(ran, branch.taken)):
                found.add((branch.line, target))
            # In `finally`, a false condition can be the last step before an exception goes on.
            if any(map(ran, branch.other)) and (other < 0 or other in executed):
                found.add((branch.line, other))
    known = reporter.translate_lines(n for lines in probes.lines.values() for n in lines)
    missing = sorted(expected | (reporter.lines() - known))
    if missing:
        raise ValueError(f"{reporter.filename} has no probes for lines {missing}")
    return found
