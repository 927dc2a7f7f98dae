"""What a check found."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal

from rota.platform.start_checks import StartRefused
from rota.platform.telemetry import without_secrets

# `failed` needs a fix before the service works. `warning` is about a part that may be off on
# purpose.
Status = Literal["ok", "warning", "failed"]

CHECK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    status: Status
    # One line: what was found and, unless it is ok, what to do.
    message: str


def ok(check: str, message: str) -> Finding:
    return Finding(check, "ok", message)


def warning(check: str, message: str) -> Finding:
    return Finding(check, "warning", _line(message))


def failed(check: str, message: str) -> Finding:
    return Finding(check, "failed", _line(message))


def _line(message: str) -> str:
    return " ".join(without_secrets(message).split())


def detail(error: BaseException) -> str:
    """The error on one line, with its kind if it says nothing else."""
    return " ".join(str(error).split()) or type(error).__name__


Check = Callable[[], AsyncIterator[Finding]]


async def findings(name: str, check: Check, timeout_s: float = CHECK_TIMEOUT_S) -> list[Finding]:
    """Everything that a check found, and what stopped it if something did."""
    found: list[Finding] = []
    try:
        async with asyncio.timeout(timeout_s):
            async for each in check():
                found.append(each)  # noqa: PERF401  The list keeps what came before an error.
    except StartRefused as error:
        found.append(failed(name, str(error)))
    except TimeoutError:
        found.append(
            failed(name, f"No response within {timeout_s:g} s. Check that no firewall blocks it.")
        )
    except Exception as error:
        if isinstance(error, OSError) and error.filename:
            message = f"Cannot read {error.filename}: {error.strerror}. Correct the setting."
        else:
            message = f"The check stopped with {type(error).__name__}: {detail(error)}"
        found.append(failed(name, message))
    return found
