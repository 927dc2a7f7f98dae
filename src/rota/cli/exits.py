"""The exit codes of the command line, and errors of the service as one readable line."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn

import typer

from rota.cli.profiles import ProfileError
from rota.cli.text import safe_json, safe_line

if TYPE_CHECKING:
    from rota_sdk.errors import APIError
    from rota_sdk.models import FieldError


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
    # The pending review is not the one that was named. Nothing was decided.
    REVIEW_STALE = 6
    # Other arguments were saved in a new review, which a second person has to approve.
    NOT_APPROVED = 7
    # A check of the ledger or of payments could not use the database. Another attempt can succeed.
    DATABASE_UNAVAILABLE = 8
    INTERRUPTED = 130


# What a command that follows a task exits with, by the state of the task.
BY_STATUS = {
    "COMPLETED": ExitCode.OK,
    "FAILED": ExitCode.TASK_FAILED,
    "CANCELLED": ExitCode.TASK_CANCELLED,
    "WAITING_APPROVAL": ExitCode.REVIEW_WAITS,
}


# Whether the command prints JSON.
_as_json: ContextVar[bool] = ContextVar("as_json", default=False)


def fail(
    message: str,
    code: ExitCode = ExitCode.ERROR,
    cause: "APIError | None" = None,
    hint: str = "",
) -> NoReturn:
    """Exits with one line. With --json, it has the form of an error of the API."""
    if prints_json():
        # JSON has the parts of the error in their own fields.
        print_error(f"{cause.message} {hint}".rstrip() if cause else message, cause)
    else:
        typer.echo(safe_line(f"{message} {hint}"), err=True)
    raise typer.Exit(code)


def print_error(message: str, cause: "APIError | None" = None) -> None:
    """Prints one line of JSON on standard error."""
    error = {
        "code": cause.code if cause else None,
        "message": safe_line(message),
        "details": cause.details if cause else None,
        "status": cause.status if cause else None,
        "requestId": cause.request_id if cause else None,
        "retryAfterS": cause.retry_after_s if cause else None,
    }
    typer.echo(safe_json(json.dumps({"error": error}, ensure_ascii=False)), err=True)


def prints_json() -> bool:
    return _as_json.get()


@contextmanager
def json_errors() -> Iterator[None]:
    """Within it, errors are printed as JSON."""
    before = _as_json.set(True)
    try:
        yield
    finally:
        _as_json.reset(before)


@contextmanager
def errors_as_one_line(
    *, as_json: bool = False, sign_in: Callable[[], str] = lambda: "To sign in again: rota login"
) -> Iterator[None]:
    """Exits with a code and one line for everything that can go wrong with a request. `sign_in`
    says what to do if the service does not accept the credential."""
    with json_errors() if as_json else nullcontext(), _expected_errors(sign_in):
        yield


def _problem(field: "FieldError") -> str:
    """`limit must be from 1 to 100`, or `agent: It is not in the catalog.`"""
    colon = ":" if field.message[:1].isupper() else ""
    return f"{field.field}{colon} {field.message}"


@contextmanager
def _expected_errors(sign_in: Callable[[], str]) -> Iterator[None]:
    from rota_sdk import errors

    try:
        yield
    except errors.StaleReviewError as error:
        review = error.review
        waits = review.state == "pending" and review.summary
        now = f" Now waiting: {review.summary}" if waits else ""
        fail(f"{error.message}{now}", ExitCode.REVIEW_STALE, error)
    except errors.ValidationError as error:
        problems = "; ".join(map(_problem, error.fields))
        fail(problems or error.message, cause=error)
    except errors.AuthenticationError as error:
        fail(error.message, cause=error, hint=sign_in())
    except errors.APIError as error:
        request = f" (request {error.request_id})" if error.request_id else ""
        fail(f"{error.message}{request}", cause=error)
    except errors.APIConnectionError as error:
        fail(f"{str(error).rstrip('.')}. Check the URL, and check that the service is running.")
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
