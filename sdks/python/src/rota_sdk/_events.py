"""What a stream of events yields."""

from typing import Literal, TypeAlias, TypeVar

from rota_sdk import errors
from rota_sdk._model import Model
from rota_sdk._sse import Message
from rota_sdk.models import Event

M = TypeVar("M", bound=Model)

# A task in one of these states has ended. Only a failed one can start again, by a retry.
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class TextDelta(Model):
    """Text that a model has just written. Append it to the text of its run and step."""

    type: Literal["delta"] = "delta"
    run: int
    step: int
    text: str


class TextSnapshot(Model):
    """The whole text of a step so far. It replaces what arrived before."""

    type: Literal["text"] = "text"
    run: int
    step: int
    text: str


TaskEvent: TypeAlias = Event | TextDelta | TextSnapshot


def decoded(message: Message) -> TaskEvent | None:
    """The event of a message. None for a kind that this version does not know."""
    if message.id is not None:
        return _read(Event, message)
    if message.event == "delta":
        return _read(TextDelta, message)
    if message.event == "text":
        return _read(TextSnapshot, message)
    return None


def decoded_event(message: Message) -> Event | None:
    """The event of a message of an account's stream, which has no texts."""
    return None if message.id is None else _read(Event, message)


def _read(kind: type[M], message: Message) -> M:
    try:
        return kind.model_validate_json(message.data)
    except ValueError as error:
        raise errors.UnreadableResponseError(
            f"This version of the SDK cannot read an event. Update rota-sdk. {error}"
        ) from error
