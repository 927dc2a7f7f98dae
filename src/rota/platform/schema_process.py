"""The process that checks values against JSON Schemas of tool servers.

`schema.py` starts it as a program of its own. It imports nothing else of the service, so it starts
fast, and it gets no environment, so it holds no secret.

A request is the lengths of the schema and of the value, as two 32-bit integers, and then both as
JSON. A response is its length and a JSON array: the outcome, the problems, the seconds of processor
time, and whether the process can be used again.
"""

import contextlib
import json
import os
import resource
import signal
import struct
import sys
import time
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO

from jsonschema_rs import (
    Draft202012Validator,
    FancyRegexOptions,
    RegexOptions,
    ValidationError,
    ValidationErrorKind,
)

MAX_PROBLEMS = 20
# The processor time of one check. After that, the kernel ends the process.
MAX_CPU_S = 1.0
MAX_MEMORY = 256 * 1024 * 1024
# A process that has grown above this is not used again. Compiled patterns can be large.
MAX_KEPT_MEMORY = 128 * 1024 * 1024
MAX_CACHED_SCHEMAS = 500
MAX_BACKTRACKS = 100_000

LENGTHS = struct.Struct(">II")
LENGTH = struct.Struct(">I")
READY = b"+"

# A pattern that an engine could not finish.
_UNFINISHED = (ValidationErrorKind.BacktrackLimitExceeded, ValidationErrorKind.RegexEngineFailure)


@lru_cache(MAX_CACHED_SCHEMAS)
def _validator(raw: bytes) -> Draft202012Validator:
    # Cached, because reading a schema takes longer than checking a value.
    schema = json.loads(raw)
    try:
        return _compiled(schema, RegexOptions())
    except ValidationError:
        # The engine that takes linear time has no look-around and no back references.
        return _compiled(schema, FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS))


def _compiled(schema: Any, patterns: RegexOptions | FancyRegexOptions) -> Draft202012Validator:
    return Draft202012Validator(
        schema, pattern_options=patterns, validate_formats=True, offline=True
    )


def check(schema: bytes, value: bytes) -> tuple[str, list[str]]:
    """The outcome (`ok`, `invalid` or `unusable`) and the problems, at most MAX_PROBLEMS."""
    try:
        errors = _validator(schema).iter_errors(json.loads(value))
        found = list(islice(errors, MAX_PROBLEMS))
    except Exception as error:
        # A schema comes from a tool server, and can make the library fail in many ways.
        return "unusable", [getattr(error, "message", str(error))[:200]]
    for each in found:
        if isinstance(each.kind, _UNFINISHED):
            return "unusable", [each.message[:200]]
    return ("invalid" if found else "ok"), [_describe(error) for error in found]


def _describe(error: ValidationError) -> str:
    where = "/".join(str(part)[:80] for part in error.instance_path)
    return f"{where[:200]}: {error.message[:500]}" if where else error.message[:500]


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Answers requests until there are no more."""
    responses.write(READY)
    responses.flush()
    while len(head := requests.read(LENGTHS.size)) == LENGTHS.size:
        schema_length, value_length = LENGTHS.unpack(head)
        schema, value = requests.read(schema_length), requests.read(value_length)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MAX_CPU_S)
        outcome, problems = check(schema, value)
        signal.setitimer(signal.ITIMER_PROF, 0)
        cpu_s = time.process_time() - started
        answer = json.dumps([outcome, problems, cpu_s, _memory() < MAX_KEPT_MEMORY]).encode()
        responses.write(LENGTH.pack(len(answer)) + answer)
        responses.flush()


def _memory() -> int:
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except FileNotFoundError:  # On macOS, for development.
        return 0


def main() -> None:
    # Its default action ends the process, also while the library works.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with contextlib.suppress(ValueError):  # macOS does not have this limit.
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The service has gone if nobody reads.
    with contextlib.suppress(ConnectionError):
        serve(sys.stdin.buffer, sys.stdout.buffer)
    os._exit(0)


if __name__ == "__main__":
    main()
