"""Public schemas of the timeline."""

from typing import Annotated, Any, Literal

from typing_extensions import TypeAliasType

from rota.auth.schemas import Actor
from rota.credits.money import exact_usd
from rota.credits.schemas import ExactUsd
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Count, Timestamp, Total, Wire, doc
from rota.runs.timeline import CutValue, Entry
from rota.tasks.review_item_schemas import decider

StepKind = TypeAliasType(
    "StepKind",
    Annotated[
        Literal["model", "summary", "tool", "approval"],
        doc("A model call, a summary of a long run, a tool call, or a review.", "model"),
    ],
)
StepState = TypeAliasType(
    "StepState",
    Annotated[
        Literal[
            "planned",
            "gated",
            "started",
            "delegated",
            "finished",
            "pending",
            "approved",
            "rejected",
            "expired",
            "cancelled",
        ],
        doc(
            "Calls are `planned`, `gated` (waiting for a person), `started`, `delegated` (to a "
            "subtask) or `finished`. Approvals are `pending`, `approved`, `rejected`, "
            "`expired` or `cancelled` (the task ended, or its text changed).",
            "finished",
        ),
    ],
)
StepCut = TypeAliasType(
    "StepCut", Annotated[CutValue, doc("A value of a step that a list has cut.", "result")]
)
StepOutcome = TypeAliasType(
    "StepOutcome",
    Annotated[
        Literal["ok", "failed", "rejected"],
        doc("How a call ended. A model call is `failed` if its answer cannot be used.", "ok"),
    ],
)


class TimelineStep(Wire):
    """One step of a task: a model call, a tool call or an approval."""

    id: Annotated[str, doc("The ID of the step, unique within the task.", "call-1-1-0")]
    kind: Annotated[StepKind, doc("What kind of step it is.")]
    run: Annotated[int, doc("The run, from 1.", 1)]
    step: Annotated[int | None, doc("The step of the run, from 1. Null for an approval.", 1)]
    name: Annotated[
        str | None,
        doc(
            "The name of the model or tool; for an approval, its gate. Null for an approval of a "
            "task that the service does not run.",
            examples.MODEL,
        ),
    ]
    server: Annotated[
        str | None,
        doc("The name of the tool server. Null for other steps and built-in tools.", None, "docs"),
    ]
    state: Annotated[StepState, doc("The state of the step.")]
    outcome: Annotated[
        StepOutcome | None, doc("How the call ended. Null before that and for an approval.")
    ]
    arguments: Annotated[
        Any,
        doc(
            "The arguments of a tool call, or the items of an approval. A model call can have "
            "`throughStep`, the last step that a summary replaces; `insteadOf`, the models before "
            "this one in the chain; and `bytesPerToken`, the new estimate of the bytes per token, "
            "if it is lower than before. Null otherwise.",
            None,
            {"title": "Onboarding checklist"},
        ),
    ]
    result: Annotated[
        Any,
        doc(
            "For a model call, its `text` and the names of the `toolCalls` it requested. For a "
            "tool call, its result. For an approval, the reason, or null.",
            {"text": "1. IT: prepare the laptop.", "toolCalls": []},
        ),
    ]
    child_task_id: Annotated[
        str | None,
        doc(
            "The subtask, for a tool call that delegates. Otherwise null.",
            None,
            examples.SUBTASK_ID,
        ),
    ]
    input_tokens: Annotated[Count, doc("Tokens sent to the model; 0 for other steps.", 1_840)]
    output_tokens: Annotated[Count, doc("Tokens received from the model; 0 for other steps.", 412)]
    cached_input_tokens: Annotated[
        Count, doc("The part of `inputTokens` that the provider read from its cache.", 1_024)
    ]
    cache_write_tokens: Annotated[
        Count, doc("The part of `inputTokens` that the provider wrote to its cache.", 0)
    ]
    reasoning_tokens: Annotated[
        Count, doc("The part of `outputTokens` that the model spent on reasoning.", 128)
    ]
    estimated: Annotated[
        bool,
        doc("Whether Rota counted tokens itself because the provider did not report them.", False),
    ]
    cost_usd: ExactUsd
    price_version: Annotated[
        str | None,
        doc("The price list that was used. Null except for a model call.", "genai-prices/0.2.8"),
    ]
    started_at: Annotated[
        Timestamp,
        doc(
            "When the step started, or when it was planned if it has not started.", examples.STARTED
        ),
    ]
    finished_at: Annotated[
        Timestamp | None, doc("When the step ended. Null before that.", examples.CHARGED)
    ]
    duration_ms: Annotated[
        int | None, doc("How long the step took, in milliseconds. Null before it ended.", 21_228)
    ]
    decided_by: Annotated[
        Actor | None, doc("Who decided. Null except for a decided approval.", None)
    ]
    note: Annotated[
        str | None,
        doc(
            "What the model was told after its answer: why the answer cannot be used, or why a "
            "person rejected it. Null otherwise.",
            None,
            "Your answer was empty. Write the answer, or call a tool.",
        ),
    ]
    copied: Annotated[
        bool,
        doc(
            "Whether the step was copied from the task that this one was forked from. It was "
            "made and charged there, so it has no cost here.",
            False,
        ),
    ]
    truncated: Annotated[
        list[StepCut],
        doc(
            "What is cut, because the page would be larger than 1 MiB: the value is the beginning "
            "of its text. A page of one step (`limit=1`) is always whole.",
            [],
        ),
    ]

    @classmethod
    def of(cls, entry: Entry) -> "TimelineStep":
        took = entry.finished_at - entry.started_at if entry.finished_at else None
        return cls(
            id=entry.id,
            kind=entry.kind,
            run=entry.run,
            step=entry.step,
            name=entry.name,
            server=entry.server,
            state=entry.state,
            outcome=entry.outcome,
            arguments=entry.arguments,
            result=_result(entry),
            child_task_id=ids.to_wire("task", entry.child_task_id) if entry.child_task_id else None,
            input_tokens=entry.input_tokens,
            output_tokens=entry.output_tokens,
            cached_input_tokens=entry.cached_input_tokens,
            cache_write_tokens=entry.cache_write_tokens,
            reasoning_tokens=entry.reasoning_tokens,
            estimated=entry.estimated,
            cost_usd=exact_usd(entry.cost_micros),
            price_version=entry.price_version,
            started_at=entry.started_at,
            finished_at=entry.finished_at,
            duration_ms=round(took.total_seconds() * 1000) if took else None,
            decided_by=decider(entry.decided_by, entry.decided_with),
            note=entry.note,
            copied=entry.copied,
            truncated=entry.truncated,
        )


class TimelineResponse(Wire):
    """A page of the timeline."""

    steps: Annotated[list[TimelineStep], doc("The steps on this page, oldest first.")]
    total: Total


def _result(entry: Entry) -> Any:
    """The step's result. For a model call, its text and the tools that it requested."""
    if entry.kind not in ("model", "summary"):
        return entry.result
    # An answer that could not be stored has no result.
    parts = entry.result["parts"] if entry.result else []
    return {
        "text": "".join(p["content"] for p in parts if p["part_kind"] == "text") or None,
        "toolCalls": [p["tool_name"] for p in parts if p["part_kind"] == "tool-call"],
    }
