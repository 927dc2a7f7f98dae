"""What the model reads: the conversation so far and the notes about its tool calls.

It also prepares what the model says for the database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from rota.agents.model import AgentVersion
from rota.platform import json
from rota.platform.canonical import canonical_json
from rota.platform.schema import Verdict
from rota.runs import compaction
from rota.runs.compaction import View
from rota.runs.steps import Step
from rota.tasks.model import Review, Task

# A review shows this much of what the model wrote beside a call, in characters.
MAX_WORDS = 2_000

CUT_OFF_CALL = (
    "The answer was cut off at the output limit, so this call was not made. Call the tool again, "
    "with shorter arguments."
)

EDITED_CALL = "\n\n[A person changed this call before approving it: {names}.]"


class _Edit(NamedTuple):
    """The arguments with which a call was made, and the names of those that a person changed."""

    arguments: dict[str, Any]
    names: list[str]


def work_of(task: Task) -> str:
    """What the model is told to do."""
    texts = [f"# {task.name}", task.description, task.input]
    if task.output_schema is not None:
        texts.append(output_instructions(task.output_schema))
    return "\n\n".join(text for text in texts if text)


def messages(
    agent: AgentVersion, task: Task, rows: Sequence[Step], view: View
) -> list[ModelMessage]:
    """The part of the conversation that the model reads."""
    first: list[ModelRequestPart] = [
        SystemPromptPart(agent.instructions),
        UserPromptPart(work_of(task)),
    ]
    if view.summary is not None:
        first.append(UserPromptPart(_summary_note(view.summary, view)))
    found: list[ModelMessage] = [ModelRequest(parts=first)]
    results_of: dict[int, list[Step]] = {row.step: [] for row in rows}
    for row in rows:
        if row.kind == "tool":
            results_of[row.step].append(row)
    for model_call in rows:
        if model_call.kind != "model" or not model_call.is_answered:
            continue
        if model_call.step <= view.after_step:
            continue
        results = results_of[model_call.step]
        response = response_of(model_call)
        edits = _edits(response, results)
        # Providers refuse an empty message. The note after it says that the answer was empty.
        if not is_empty(response):
            found.append(_with_calls(response, model_call.step, len(results), edits))
        reply: list[ModelRequestPart] = [
            _tool_return(row, view, len(results), edits.get(row.call)) for row in results
        ]
        if model_call.note:
            reply.append(UserPromptPart(model_call.note))
        if reply:
            found.append(ModelRequest(parts=reply))
    return found


def output_instructions(schema: dict[str, Any]) -> str:
    """What the model is told about its answer. Not every provider enforces a schema."""
    return (
        "Your final answer must be one JSON object that matches this JSON Schema, without any "
        f"other text:\n\n{json.dumps(schema).decode()}"
    )


def _edits(response: ModelResponse, results: Sequence[Step]) -> dict[int, _Edit]:
    """What a person changed before approving it, by the number of the call.

    Also of calls without an approval: a fork copies none, and an interrupted call loses it.
    """
    found = {}
    for row in results:
        if row.sealed is None:
            continue
        requested, problem = arguments_of(response.tool_calls[row.call - 1])
        made = row.sealed_arguments
        names = [name for name in made | requested if _differs(requested, made, name)]
        if names and problem is None:
            found[row.call] = _Edit(made, names)
    return found


def is_edited(response: ModelResponse, row: Step) -> bool:
    """Whether a person changed the arguments of this call of the response."""
    return row.call in _edits(response, [row])


def arguments_of(call: ToolCallPart) -> tuple[dict[str, Any], str | None]:
    """The arguments that the model requested, or why they cannot be read."""
    try:
        given = storable(call.args_as_dict(raise_if_invalid=True))
        canonical_json(given)  # Refuses NaN and Infinity, which are not JSON.
    except (ValueError, AssertionError):
        return {}, "The arguments must be a JSON object. Correct them and call the tool again."
    return given, None


def _differs(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    if name not in one or name not in other:
        return True
    return canonical_json(one[name]) != canonical_json(other[name])


def _with_calls(
    response: ModelResponse, step: int, made: int, edits: Mapping[int, _Edit]
) -> ModelResponse:
    """The response as it was carried out: calls with the arguments that a person approved, and
    without the calls that were not made, because providers want a result for each."""
    parts: list[ModelResponsePart] = []
    call = 0
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            call += 1
            if call <= made:
                made_call = replace(part, tool_call_id=_call_id(step, call))
                if call in edits:
                    made_call = replace(made_call, args=canonical_json(edits[call].arguments))
                parts.append(made_call)
        else:
            parts.append(part)
    return replace(response, parts=parts)


def _call_id(step: int, call: int) -> str:
    """Every provider accepts 9 letters and digits, even for a call that another model requested."""
    return f"c{step:05d}{call:03d}"


def response_of(model_call: Step) -> ModelResponse:
    """The stored response of a model call."""
    return parsed(model_call.result)


def parsed(stored: Any) -> ModelResponse:
    """A response that is stored as this."""
    [message] = ModelMessagesTypeAdapter.validate_python([stored])
    assert isinstance(message, ModelResponse)
    return message


def words_beside_calls(response: ModelResponse) -> str | None:
    """What the model wrote beside its tool calls, for people who decide about them."""
    text = storable(response.text or "").strip()
    if len(text) > MAX_WORDS:
        text = text[: MAX_WORDS - 1] + "…"
    return text or None


def is_empty(response: ModelResponse) -> bool:
    return not response.tool_calls and not (response.text or "").strip()


def _summary_note(summary: Step, view: View) -> str:
    text = compaction.summary_text(summary)
    shown = compaction.first_part(text, (view.step_size or 0) // 2)
    if len(shown) < len(text):
        shown += compaction.truncated(len(text))
    return (
        "# Your work so far\n\nThe conversation was too long. This summary replaces its steps 1 to "
        f"{view.after_step}. You can read each tool result of these steps again with read_result."
        f"\n\n{shown}"
    )


def _tool_return(row: Step, view: View, calls: int, edit: _Edit | None) -> ToolReturnPart:
    text = compaction.removal_note(row) if row.step < view.whole_from else None
    if text is None:
        text = view.shown(row, calls)
    if edit:
        text += EDITED_CALL.format(names=", ".join(edit.names))
    return ToolReturnPart(
        tool_name=row.name, content=text, tool_call_id=_call_id(row.step, row.call)
    )


def problem_with(verdict: Verdict) -> str | None:
    """What is wrong with the arguments of a call, so that the model can correct them."""
    found = "; ".join(verdict.problems[:5])
    if not verdict.usable:
        return f"This call was not made: {found}. Continue without this tool."
    return f"The arguments do not match the tool's schema: {found}" if found else None


def too_many_calls(requested: int, made: int) -> str:
    return (
        f"Your answer contained {requested} tool calls. Only the first {made} were made. Make the "
        f"others in later answers, at most {made} in one answer."
    )


def rejection(what: str, review: Review) -> str:
    return f"A person rejected this {what}.{_reason(review)}"


def unknown_outcome(review: Review) -> str:
    """For a rejected call that was started earlier."""
    return (
        "This call was started and may have taken effect. Its outcome is unknown. A person decided "
        f"not to repeat it.{_reason(review)}"
    )


ANSWER_NOT_DECIDED = (
    "No person decided about this answer before the deadline of the task. The task has more time "
    "now. Give your answer again."
)


def not_decided(*, asks: bool, maybe_made: bool) -> str:
    """For a question or a call that waited for a person when the task's deadline passed."""
    if maybe_made and not asks:
        return (
            "This call was started and may have taken effect. Its outcome is unknown. No person "
            "decided about it before the deadline of the task."
        )
    if asks:
        return "No person answered before the deadline of the task."
    return "No person decided about this call before the deadline of the task, so it was not made."


def _reason(review: Review) -> str:
    return f" Reason: {review.reason}" if review.reason else ""


def storable(value: Any) -> Any:
    """Replaces what PostgreSQL cannot store: NUL and unpaired surrogates."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode(errors="replace").decode()
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def _storable_response(response: ModelResponse) -> ModelResponse:
    parts = [
        replace(
            part,
            **{
                name: storable(getattr(part, name))
                for name in ("content", "tool_name", "tool_call_id", "args")
                if hasattr(part, name)
            },
        )
        for part in response.parts
    ]
    return replace(response, parts=parts)


def dump_response(response: ModelResponse) -> Any:
    """The response as a step stores it."""
    return json.exact(ModelMessagesTypeAdapter.dump_json([_storable_response(response)]))[0]
