"""The exit codes of the command line, and errors of the service as one readable line."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

import typer

from rota.cli.profiles import ProfileError
from rota.cli.text import safe_line


class ExitCode(IntEnum):
    """Scripts depend on these numbers."""

    OK = 0
    # The service refused, failed or was not reached; or something on this machine is missing.
    ERROR = 1
    # The command, a profile or a setting is not valid.
    USAGE = 2
    TASK_FAILED = 3
    TASK_CANCELLED = 4
    # The task waits for a person.
    REVIEW_WAITS = 5
    # Another review waits than the one that was named. Nothing was decided.
    REVIEW_STALE = 6
    INTERRUPTED = 130


# What a command that follows a task exits with, by the state of the task.
BY_STATUS = {
    "COMPLETED": ExitCode.OK,
    "FAILED": ExitCode.TASK_FAILED,
    "CANCELLED": ExitCode.TASK_CANCELLED,
    "WAITING_APPROVAL": ExitCode.REVIEW_WAITS,
}


def fail(message: str, code: ExitCode = ExitCode.ERROR) -> NoReturn:
    typer.echo(safe_line(message), err=True)
    raise typer.Exit(code)


@contextmanager
def errors_as_one_line() -> Iterator[None]:
    """Exits with a code and one line for everything that can go wrong with a request."""
    from rota_sdk import errors

    try:
        yield
    except errors.StaleReviewError as error:
        now = f" Now waiting: {error.review.summary}" if error.review.summary else ""
        fail(f"{error.message}{now}", ExitCode.REVIEW_STALE)
    except errors.ValidationError as error:
        problems = "; ".join(f"{each.field} {each.message}" for each in error.fields)
        fail(problems or error.message, ExitCode.USAGE)
    except errors.AuthenticationError as error:
        fail(f"{error.message} To sign in again: rota login")
    except errors.APIError as error:
        request = f" (request {error.request_id})" if error.request_id else ""
        fail(f"{error.message}{request}")
    except errors.APIConnectionError as error:
        fail(f"{error} Check the URL and that the service runs.")
    except errors.RotaError as error:
        fail(str(error).splitlines()[0])
    except ProfileError as error:
        fail(str(error), ExitCode.USAGE)
    except ValueError as error:
        # What the SDK refuses before it sends anything. Pydantic's errors have a list.
        details = getattr(error, "errors", None)
        first = details()[0] if callable(details) else None
        place = ".".join(map(str, first["loc"])) + ": " if first else ""
        fail(f"{place}{first['msg'] if first else error}", ExitCode.USAGE)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
