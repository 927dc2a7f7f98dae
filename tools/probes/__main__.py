import argparse
import ast
import hashlib
import marshal
import shutil
from collections.abc import Iterator
from pathlib import Path

from coverage import Coverage, CoverageData
from coverage.python import PythonFileReporter

from tools.probes import Probes, arcs, instrument
from tools.probes.hook.sitecustomize import FOLDER, ROOT, SEEN, SOURCE, compiled

DIGEST = FOLDER / "digest"


def modules() -> list[Path]:
    return sorted((SOURCE / "rota").rglob("*.py"))


def digest() -> str:
    files = {str(path.relative_to(SOURCE)): path.read_bytes().hex() for path in modules()}
    return hashlib.sha256(repr(files).encode()).hexdigest()


def instrumented() -> Iterator[tuple[Path, ast.Module, Probes]]:
    start = 0
    for path in modules():
        tree, probes = instrument(path.read_bytes(), str(path), start)
        start = probes.end
        yield path, tree, probes


def prepare() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    end = 0
    for path, tree, probes in instrumented():
        code = compile(tree, str(path), "exec", dont_inherit=True)
        compiled(path).parent.mkdir(parents=True, exist_ok=True)
        compiled(path).write_bytes(marshal.dumps(code))
        end = probes.end
    DIGEST.write_text(digest())
    SEEN.write_bytes(bytes(end))


def report() -> None:
    if DIGEST.read_text() != digest():
        raise SystemExit("src/rota has changed since `prepare`.")
    seen = SEEN.read_bytes()
    configuration = Coverage(config_file=str(ROOT / "pyproject.toml"))
    data = CoverageData(str(ROOT / ".coverage"))
    data.erase()
    for path, _, probes in instrumented():
        reporter = PythonFileReporter(str(path), configuration)
        data.add_arcs({str(path): arcs(probes, seen.__getitem__, reporter)})
        # Also a module that no process has loaded.
        data.touch_file(str(path))
    data.write()


def main() -> None:
    commands = {"prepare": prepare, "report": report}
    parser = argparse.ArgumentParser(prog="python -m tools.probes")
    parser.add_argument("command", choices=commands)
    commands[parser.parse_args().command]()


if __name__ == "__main__":
    main()
