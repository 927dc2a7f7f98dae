"""What a stream of events yields."""

from typing import Literal, TypeAlias

from rota_sdk._model import Model
from rota_sdk._sse import Message
from rota_sdk.models import Event

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
        return Event.model_validate_json(message.data)
    if message.event == "delta":
        return TextDelta.model_validate_json(message.data)
    if message.event == "text":
        return TextSnapshot.model_validate_json(message.data)
    return None


def decoded_event(message: Message) -> Event | None:
    """The event of a message of an account's stream, which has no texts."""
    return None if message.id is None else Event.model_validate_json(message.data)
