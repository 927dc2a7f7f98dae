"""Collects the file system of the image: Python, the environment in /opt/rota, and the shared
libraries that they use. Containerfile runs it with the Python of that environment."""

import compileall
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from py_compile import PycInvalidationMode

ENVIRONMENT = Path("/opt/rota")
STDLIB = Path(sysconfig.get_path("stdlib"))
# Parts of the standard library that a service has no use for, and modules that need libraries for
# terminals and old databases.
UNUSED = frozenset(
    (
        *("__pycache__", "test", "idlelib", "lib2to3", "pydoc_data", "tkinter", "turtledemo"),
        *("ensurepip", "distutils", "site-packages", "dist-packages"),
    )
)
UNUSED_MODULES = (
    *("config-", "_curses", "_dbm", "_gdbm", "_sqlite3", "_test", "_tkinter", "nis.", "readline."),
)
# Tests of packages, what only installers read, and what only compilers and editors read.
UNREAD = frozenset(("__pycache__", "tests", "testing", "benchmarks", "sdk-core", "RECORD"))
UNREAD_TYPES = (
    *(".pyi", ".pyx", ".pxd", ".pxi", ".c", ".h", ".cpp", ".hpp", ".rs", ".proto", ".a"),
)
# Pygments colours hundreds of languages. Only Python's is used: rich shows tracebacks with it.
LEXERS = frozenset(("__init__.py", "_mapping.py", "python.py"))
# What runs in every process, and what the first request over A2A imports. Only these modules have
# bytecode: all of it would be a third of the image.
USED = (
    "import rota.app, rota.worker, rota.cli.admin, rota.doctor.examination, importlib.util; "
    "importlib.util.find_spec('a2a') and __import__('rota.a2a.routes')"
)
FILES = {
    "etc/passwd": "root:x:0:0::/:/nologin\nrota:x:65532:65532::/tmp:/nologin\n",
    "etc/group": "root:x:0:\nrota:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
    "etc/ld.so.conf": "/usr/local/lib\n",
}
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def main(root: Path) -> None:
    for name in ("bin", "lib", "lib64", "sbin"):
        if Path("/", name).is_symlink():
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
    _copy_python(root)
    shutil.copytree(ENVIRONMENT, root / ENVIRONMENT.relative_to("/"), symlinks=True, ignore=_unread)
    _strip(root)
    _copy_libraries(root)
    for name, text in FILES.items():
        _parent(root / name).write_text(text)
    # Where the loader finds libraries that are not in the system's own folders.
    subprocess.run(["ldconfig", "-r", root], check=True)
    shutil.rmtree(root / "var", ignore_errors=True)
    shutil.copyfile(Path("/", CERTIFICATES), _parent(root / CERTIFICATES))
    (root / "tmp").mkdir(mode=0o1777)
    (root / "tmp").chmod(0o1777)
    _compile(root)
    for path in (*root.rglob("*"), root):
        os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _inside(root: Path, path: Path) -> Path:
    """The place of a file of this machine in the image. Directories are not links there."""
    return _parent(root / path.resolve().relative_to("/"))


def _copy_python(root: Path) -> None:
    # The environment's `python` is a link to this one, by a name that can itself be a link.
    link = Path(os.readlink(ENVIRONMENT / "bin/python"))
    real = link.resolve()
    shutil.copy2(real, _inside(root, real))
    if link != real:
        place = _parent(root / link.parent.resolve().relative_to("/") / link.name)
        place.symlink_to(real)
    shutil.copytree(STDLIB, root / STDLIB.resolve().relative_to("/"), ignore=_unused)


def _unused(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name in UNUSED or name.startswith(UNUSED_MODULES)}


def _unread(folder: str, names: list[str]) -> set[str]:
    if folder.endswith("/pygments/lexers"):
        return set(names) - LEXERS
    return {name for name in names if name in UNREAD or name.endswith(UNREAD_TYPES)}


def _shared_objects(root: Path) -> list[Path]:
    found = [path for path in root.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    return [path for path in found if path.read_bytes()[:4] == b"\x7fELF"]


def _strip(root: Path) -> None:
    """Without their symbols for debuggers, the libraries are half as large."""
    for path in _shared_objects(root):
        subprocess.run(["strip", "--strip-unneeded", path], check=True)


def _copy_libraries(root: Path) -> None:
    wanted = [*_shared_objects(root), Path(sys.executable).resolve()]
    listed = subprocess.run(
        ["ldd", *wanted],
        check=False,
        capture_output=True,
        text=True,
    ).stdout
    for line in listed.splitlines():
        words = line.replace("=>", " ").split()
        path = next((Path(word) for word in words if word.startswith("/")), None)
        if path is None or line.endswith(":") or root in path.parents:
            continue
        place = _parent(root / path.parent.resolve().relative_to("/") / path.name)
        if path.exists() and not place.exists():
            shutil.copy2(path.resolve(), place)


def _compile(root: Path) -> None:
    """Bytecode that is valid without its source's time, so that equal sources make equal images."""
    script = (
        f"{USED}; import sys; "
        "files = (getattr(module, '__file__', None) for module in sys.modules.values()); "
        "print(*filter(None, files), sep='\\n')"
    )
    listed = subprocess.run(
        [ENVIRONMENT / "bin/python", "-B", "-c", script], check=True, capture_output=True, text=True
    ).stdout
    for name in sorted(set(listed.split())):
        inside = root / Path(name).resolve().relative_to("/")
        if name.endswith(".py") and inside.exists():
            compileall.compile_file(
                inside,
                ddir=str(Path(name).parent),
                quiet=2,
                invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
