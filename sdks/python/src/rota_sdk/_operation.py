"""One operation of the API."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from rota_sdk._model import Model

T = TypeVar("T", bound=Model)


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    method: str
    path: str
    response: type[T]
    # Whether the service accepts an Idempotency-Key.
    is_keyed: bool
