"""What a client sends to create or change a webhook."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from rota.platform.egress import MAX_URL_CHARACTERS
from rota.platform.http.schemas import Body, Visible, doc, example_of, resource_of
from rota.webhooks.schemas import DESCRIPTION, TYPES, URL, Webhook

MAX_TYPES = 50
MAX_OVERLAP_HOURS = 168
_TYPE = re.compile(r"[a-z_]{1,50}\.[a-z_]{1,50}")


def _types(values: list[str]) -> list[str]:
    if not all(_TYPE.fullmatch(each) for each in values):
        raise PydanticCustomError("event_type", "must be types such as task.completed")
    return list(dict.fromkeys(values))


Url = Annotated[
    str,
    doc(
        "Where to send events: an https address on the public internet.",
        URL,
        min_length=1,
        max_length=MAX_URL_CHARACTERS,
    ),
]
Description = Annotated[
    str,
    doc("What it is for, up to 255 characters.", DESCRIPTION, min_length=1, max_length=255),
    Visible,
]
Types = Annotated[
    list[str],
    Field(min_length=1, max_length=MAX_TYPES),
    AfterValidator(_types),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "pattern": f"^{_TYPE.pattern}$"},
            "minItems": 1,
            "maxItems": MAX_TYPES,
        }
    ),
]
_TYPES = doc("The types of events that it receives. Null or absent: all.", TYPES)


class CreateWebhook(Body):
    """A webhook to create."""

    model_config = example_of("url", "events", "description")

    url: Url
    events: Annotated[Types | None, _TYPES] = None
    description: Annotated[
        Description | None, doc("What it is for, up to 255 characters.", DESCRIPTION)
    ] = None


class PatchWebhook(Body):
    """Changes to a webhook. Absent fields change nothing."""

    model_config = example_of("enabled")

    url: Url | None = None
    events: Annotated[Types | None, _TYPES] = None
    description: Annotated[
        Description | None, doc("What it is for, up to 255 characters.", DESCRIPTION)
    ] = None
    enabled: Annotated[
        bool | None,
        doc(
            "False stops deliveries. True continues at once, after the last confirmed event.", True
        ),
    ] = None


class RotateSecret(Body):
    """How to replace the secret of a webhook."""

    overlap_hours: Annotated[
        int,
        doc("For how many hours the secret before it also signs.", 24, ge=0, le=MAX_OVERLAP_HOURS),
    ] = 24


class ReplayWebhook(Body):
    """Where to continue."""

    from_sequence: Annotated[
        int,
        doc("The number of the first event to send.", 1, ge=1, le=2**53),
    ]


resource_of(CreateWebhook, PatchWebhook)(Webhook)
