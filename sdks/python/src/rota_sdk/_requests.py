"""What a request consists of, made from the arguments of a method."""

import json
import os
import platform
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx

from rota_sdk import errors
from rota_sdk._model import Body, Model
from rota_sdk._operation import Operation
from rota_sdk._version import __version__

B = TypeVar("B", bound=Body)
T = TypeVar("T", bound=Model)


class _Unset(Enum):
    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


# An argument that is not given. In changes, None clears a field and UNSET keeps it.
UNSET: Final = _Unset.UNSET
Unset: TypeAlias = _Unset


class HasId(Protocol):
    @property
    def id(self) -> str: ...


def id_of(resource: str | HasId) -> str:
    return resource if isinstance(resource, str) else resource.id


def creation(kind: type[B], **fields: Any) -> B:
    """A body with the fields that are not None."""
    return kind.model_validate({k: v for k, v in fields.items() if v is not None})


def change(kind: type[B], **fields: Any) -> B:
    """A body with the fields that are given. None clears a field."""
    return kind.model_validate({k: v for k, v in fields.items() if v is not UNSET})


def bodies(kind: type[B], given: Any) -> list[B]:
    """Bodies that are given as models or as mappings."""
    return [each if isinstance(each, kind) else kind.model_validate(each) for each in given]


def parameters(**given: Any) -> dict[str, str]:
    """Query parameters. Several values are separated by commas."""
    return {name: _parameter(value) for name, value in given.items() if value is not None}


def _parameter(value: Any) -> str:
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("The time has no time zone. Use datetime.now(UTC), for example.")
    if isinstance(value, date):
        return value.isoformat()
    return (
        ",".join(value)
        if isinstance(value, Iterable) and not isinstance(value, str)
        else str(value)
    )


def _checked_url(url: str) -> str:
    """The URL of the service. The errors do not repeat it, because it may contain a password."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("The URL of the service must start with https:// or http://.")
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        raise ValueError("The URL of the service is not valid.") from None
    if not parts.host:
        raise ValueError("The URL of the service has no host.")
    if parts.userinfo:
        raise ValueError("The URL of the service contains a user or password. Pass api_key.")
    if "?" in url or "#" in url:
        raise ValueError("The URL of the service contains a query or fragment.")
    return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Options:
    """What a client is made with."""

    base_url: str
    api_key: str | None = field(repr=False)
    account: str | None
    timeout: float | httpx.Timeout
    max_retries: int
    api_version: str | None

    @classmethod
    def of(
        cls,
        api_key: str | None,
        base_url: str | None,
        account: str | None,
        timeout: float | httpx.Timeout,
        max_retries: int,
        api_version: str | None,
    ) -> "Options":
        # ROTA_URL and ROTA_ACCOUNT are what the command line reads.
        environment = os.environ.get("ROTA_BASE_URL") or os.environ.get("ROTA_URL")
        url = environment if base_url is None else base_url
        if not url:
            raise errors.RotaError(
                "The URL of the service is missing. Pass base_url, or set ROTA_BASE_URL."
            )
        # The account goes with the key.
        if account is None and api_key is None:
            account = os.environ.get("ROTA_ACCOUNT")
        # The empty key is none at all.
        key = os.environ.get("ROTA_API_KEY") if api_key is None else api_key
        return cls(_checked_url(url), key, account, timeout, max_retries, api_version)

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise ValueError("max_retries cannot be negative.")
        # Checked here, because the error of the HTTP library would contain the key.
        if self.api_key and not re.fullmatch(r"[!-~]+", self.api_key):
            raise ValueError("The API key contains a space or a line break. Copy it again.")
        for name, value in (("account", self.account), ("api_version", self.api_version)):
            if value and not re.fullmatch(r"[!-~]+", value):
                raise ValueError(f"{name} contains a space, a line break or another character.")

    @property
    def headers(self) -> dict[str, str]:
        about = (
            f"rota-sdk/{__version__} Python/{platform.python_version()} httpx/{httpx.__version__}"
        )
        return {
            "User-Agent": about,
            **({"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}),
            **({"X-Service-Account": self.account} if self.account else {}),
            **({"Api-Version": self.api_version} if self.api_version else {}),
        }

    @property
    def timeouts(self) -> httpx.Timeout:
        if isinstance(self.timeout, httpx.Timeout):
            return self.timeout
        return httpx.Timeout(self.timeout, connect=min(self.timeout, 10))

    def within(self, most_s: float) -> "Options":
        """The same with timeouts of at most so long."""
        limits = self.timeouts.as_dict()
        shorter = {n: most_s if s is None else min(s, most_s) for n, s in limits.items()}
        return replace(self, timeout=httpx.Timeout(**shorter))


@dataclass(frozen=True, slots=True)
class Request:
    """One call of an operation. Its attempts all send the same."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes | None
    # Whether it has the same effect if it is sent again after the response was lost.
    is_repeatable: bool
    # The status that says, after an attempt without a response, that this attempt has worked.
    gone_status: int | None = None

    @classmethod
    def of(
        cls,
        operation: Operation[T],
        path: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        idempotency_key: str | None = None,
        *,
        is_repeatable: bool = True,
    ) -> "Request":
        headers = {"Accept": "application/json"}
        if operation.is_keyed:
            key = str(uuid4()) if idempotency_key is None else idempotency_key
            # Another key in its place would not stop the repetition that the caller fears.
            if not re.fullmatch(r"[!-~](?:[ -~]*[!-~])?", key):
                raise ValueError("The idempotency_key is empty or not printable ASCII.")
            headers["Idempotency-Key"] = key
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = body.model_dump_json(by_alias=True, exclude_unset=True).encode()
        filled = operation.path
        for name, value in (path or {}).items():
            if not value:
                raise ValueError(f"The {name} is empty.")
            if value in (".", ".."):
                raise ValueError(f"The {name} is not valid.")
            filled = filled.replace("{" + name + "}", quote(value, safe=""))
        return cls(operation.method, filled, query or {}, headers, content, is_repeatable)

    def of_account(self, account_id: str) -> "Request":
        """The same for this account, whichever the client selects."""
        return replace(self, headers={**self.headers, "X-Service-Account": account_id})

    @property
    def idempotency_key(self) -> str | None:
        return self.headers.get("Idempotency-Key")


def error_of(response: httpx.Response, options: Options) -> errors.APIError:
    """The error of a response whose body was read."""
    try:
        body = json.loads(response.content)
        error = body["error"]
        error.get("message")
    except (ValueError, KeyError, TypeError, AttributeError):
        error = {"message": f"The response is not from Rota: {response.text[:200]!r}"}
        if response.has_redirect_location:
            place = response.headers["Location"]
            error = {"message": f"The server redirects to {place}. Check the URL of the service."}
    if response.status_code == 401 and not options.api_key:
        error = {**error, "message": "The API key is missing. Pass api_key, or set ROTA_API_KEY."}
    return errors.api_error(
        error,
        status=response.status_code,
        request_id=response.headers.get("X-Request-Id"),
        retry_after_s=_retry_after_s(response),
    )


def is_gone(error: errors.RotaError, request: Request) -> bool:
    """Whether the service, and not a proxy, says that there is nothing left to end."""
    if not isinstance(error, errors.APIError) or error.code is None:
        return False
    return error.status == request.gone_status


def _retry_after_s(response: httpx.Response) -> float | None:
    names = ("Retry-After", "RateLimit-Reset") if response.status_code == 429 else ("Retry-After",)
    for name in names:
        value = response.headers.get(name, "")
        for read_s in (float, _seconds_until):
            try:
                return max(0.0, read_s(value))
            except ValueError:
                continue
    return None


def _seconds_until(date: str) -> float:
    return parsedate_to_datetime(date).timestamp() - time.time()


def connection_error(error: httpx.RequestError, base_url: str) -> errors.APIConnectionError:
    unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
    was_sent = not isinstance(error, unsent)
    if isinstance(error, httpx.TimeoutException):
        return errors.APITimeoutError(f"{base_url} did not respond in time.", was_sent=was_sent)
    reason = str(error) or type(error).__name__
    text = f"The connection to {base_url} failed: {reason}"
    return errors.APIConnectionError(text, was_sent=was_sent)


def read(operation: Operation[T], response: httpx.Response) -> T:
    try:
        return operation.response.model_validate_json(response.content)
    except ValueError as error:
        # The path without its values: some are secrets, such as the token of an invitation.
        raise errors.UnreadableResponseError(
            f"The response of {operation.method} {operation.path} is not what this version of the "
            f"SDK knows. Update rota-sdk. {error}"
        ) from error
