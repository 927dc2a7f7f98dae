"""Public schemas of the items of a review: what is decided one by one."""

import json
from typing import Annotated, Any
from uuid import UUID

from typing_extensions import TypeAliasType

from rota.auth.schemas import Actor
from rota.mcp.model import Acceptance
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Body, Timestamp, Wire, doc, resource_of
from rota.tasks import model, summaries
from rota.tasks.model import Credential, Definitions, accepted_definition
from rota.tasks.schemas import Id

ItemDecision = TypeAliasType(
    "ItemDecision",
    Annotated[model.ItemDecision, doc("What a person decided about an item.", "approved")],
)
_ARGUMENTS = {"title": "Onboarding checklist"}
_ARGUMENTS_SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
}
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


class Decision(Body):
    """One pending item to approve."""

    id: Annotated[Id, doc("The ID of a pending item of the review.", "call-1-1-1")]
    arguments: Annotated[
        dict[str, Any] | None,
        doc(
            "Changed arguments for the tool call, valid against `argumentsSchema`. "
            "Default: the arguments that the item shows.",
            {"title": "Onboarding checklist for new colleagues"},
        ),
    ] = None


@resource_of(Decision)
class ReviewItem(Wire):
    """Something that a person decides: a tool call, or an output."""

    id: Annotated[
        str, doc("The ID of the item, unique within the task. Use it in `decisions`.", "call-1-1-1")
    ]
    tool: Annotated[
        str | None,
        doc("The tool that the agent wants to call. Null at an output gate.", "create_draft"),
    ]
    server: Annotated[
        str | None,
        doc("The name of the tool server. Null for an output and for built-in tools.", "docs"),
    ]
    server_id: Annotated[
        str | None,
        doc(
            "The ID of the tool server that gets the call. Null like `server`.", examples.SERVER_ID
        ),
    ] = None
    server_revision: Annotated[
        int | None,
        doc(
            "The revision of the tool server, which changes with its URL and credentials. Null "
            "like `server`.",
            1,
        ),
    ] = None
    server_url: Annotated[
        str | None,
        doc("Where the call is sent. Null like `server`.", "https://mcp.example.com/mcp"),
    ] = None
    tool_description: Annotated[
        str | None,
        doc("What the tool does, as its server says. Null for an output.", "Creates a draft."),
    ] = None
    tool_title: Annotated[
        str | None,
        doc("The title of the tool, as its server says. Null if it has none.", "Create a draft"),
    ] = None
    annotations: Annotated[
        dict[str, Any] | None,
        doc(
            "What the server says about the effects of the tool, such as `readOnlyHint` and "
            "`destructiveHint`. Null if it says nothing.",
            {"readOnlyHint": False, "destructiveHint": False},
        ),
    ] = None
    definition_hash: Annotated[
        str | None,
        doc(
            "The hash of the tool's definition in this review, as the tool server's page shows it. "
            "Null for an output, for built-in tools and for reviews of earlier versions.",
            DIGEST,
        ),
    ] = None
    definition_accepted: Annotated[
        bool | None,
        doc(
            "Whether this is still the accepted definition of the tool. Null like "
            "`definitionHash`.",
            True,
        ),
    ] = None
    accepted_by: Annotated[
        Actor | None,
        doc("Who accepted this definition. Null if it is not accepted or unknown.", None),
    ] = None
    accepted_at: Annotated[
        Timestamp | None,
        doc("When this definition was accepted. Null like `acceptedBy`.", None, examples.CREATED),
    ] = None
    summary: Annotated[
        str,
        doc(
            "What the call will do, in one sentence of at most 200 characters. Rota builds it "
            "from the agent's file, the tool and the arguments. The model does not write it.",
            "Create the draft “Onboarding checklist”",
        ),
    ]
    agent_says: Annotated[
        str | None,
        doc(
            "What the model wrote beside the call, at most 2,000 characters. It can be wrong. Null "
            "if it wrote nothing.",
            "I have put the steps into one checklist.",
        ),
    ] = None
    arguments: Annotated[
        dict[str, Any] | None,
        doc(
            "The arguments of the call. At an output gate, the `output`, or the data itself if the "
            "task has an `outputSchema`.",
            _ARGUMENTS,
        ),
    ]
    edited: Annotated[bool, doc("Whether a person has changed the arguments.", False)] = False
    edited_by: Annotated[
        Actor | None,
        doc(
            "Who changed the arguments before this review, so that a second person approves them. "
            "Null otherwise.",
            None,
        ),
    ] = None
    digest: Annotated[
        str | None,
        doc(
            "The SHA-256 of the call with these arguments. The call is made only if it still has "
            "this digest. Null for reviews of earlier versions.",
            DIGEST,
        ),
    ] = None
    arguments_schema: Annotated[
        dict[str, Any] | None,
        doc(
            "The JSON Schema that changed arguments must match. Null if unknown.", _ARGUMENTS_SCHEMA
        ),
    ]
    reason: Annotated[
        str | None,
        doc("Why a person must decide.", "The agent's policy requires approval of this call."),
    ]
    decision: Annotated[
        ItemDecision | None, doc("The decision. Null while the item waits.", None, "approved")
    ]
    decided_by: Annotated[Actor | None, doc("Who decided. Null while the item waits.", None)]
    decided_at: Annotated[
        Timestamp | None,
        doc("When it was decided. Null while the item waits.", None, examples.FINISHED),
    ]

    @classmethod
    def of(cls, item: model.ReviewItem, definitions: Definitions) -> "ReviewItem":
        shown: dict[str, Any] = {**item}
        if (sealed := item.get("sealed")) is not None:
            # Exactly what is decided about. The database changes some numbers.
            shown["arguments"] = json.loads(sealed)["arguments"]
        shown["summary"] = summaries.of_item(item, shown["arguments"] or {})
        if isinstance(item["decidedBy"], str):
            # An earlier version stored only the user.
            shown["decidedBy"] = Actor(user_id=item["decidedBy"], name=None, via=None, key_id=None)
        if (shown_hash := item.get("definitionHash")) is not None:
            accepted = accepted_definition(item, definitions)
            still = accepted is not None and accepted.hash == shown_hash
            shown["definitionAccepted"] = still
            if accepted is not None and still and accepted.acceptance is not None:
                shown["acceptedBy"] = _actor(accepted.acceptance)
                shown["acceptedAt"] = accepted.acceptance.at
        return cls(**shown)


def decider(user_id: UUID | None, credential: Credential | None) -> Actor | None:
    """The decider of a review, from its columns."""
    if user_id is None or credential is None:
        return None
    return Actor(
        user_id=ids.to_wire("user", user_id),
        name=credential["name"],
        via=credential["via"],
        key_id=credential["keyId"],
        rule_id=credential.get("ruleId"),
    )


def _actor(acceptance: Acceptance) -> Actor:
    key = acceptance.key_id
    return Actor(
        user_id=ids.to_wire("user", acceptance.user_id),
        name=acceptance.name,
        via="key" if key else "session",
        key_id=ids.to_wire("key", key) if key else None,
    )
