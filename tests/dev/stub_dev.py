"""`rota dev` as a program, with a stub instead of the service and its migrations."""

import argparse
import sys
from pathlib import Path

from rota.dev.command import detach_command, run_command, stop_command
from rota.dev.run import Options

SERVICE = str(Path(__file__).with_name("stub_service.py"))

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", default="a")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--detach", action="store_true")
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--model", default="demo")
    parser.add_argument("--migrate", default="pass")
    parser.add_argument("--crash", action="store_true")
    given = parser.parse_args()
    options = Options(
        given.data,
        given.variant,
        given.port,
        given.fresh,
        tuple(given.without),
        model=given.model,
        migrate=(sys.executable, "-c", given.migrate),
        sync=(sys.executable, "-c", "pass"),
        serve=(sys.executable, SERVICE, *(["crash"] if given.crash else [])),
        work=(sys.executable, SERVICE),
    )
    if given.stop:
        sys.exit(stop_command(options))
    if given.detach:
        sys.exit(detach_command(options, [sys.executable, __file__]))
    sys.exit(run_command(options))
