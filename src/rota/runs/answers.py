"""Answers that cannot be the output of a task. The model gets one chance to answer again."""

from pydantic_ai.messages import ModelResponse

from rota.runs.model_errors import GiveUp
from rota.runs.steps import Step
from rota.runs.transcript import is_empty
from rota.tasks.schemas import MAX_TEXT


class UnusableAnswer(GiveUp):
    """Ends the run if the model answers again in an unusable way."""

    retryable = True
    # What the model is told before it answers again.
    note: str


class CutOff(UnusableAnswer):
    code = "OUTPUT_CUT_OFF"
    note = (
        "Your answer was cut off at the output limit and cannot be used. Answer again, completely "
        "and in fewer words."
    )

    def __init__(self) -> None:
        super().__init__(
            "The model's answer was cut off at the output limit, even after it was asked again. "
            "Ask for a shorter answer, or raise maxOutputTokens in ROTA_MODELS or the agent's "
            "budget, then retry the task."
        )


class Empty(UnusableAnswer):
    code = "EMPTY_ANSWER"
    note = "Your answer was empty. Write the answer, or call a tool."

    def __init__(self) -> None:
        super().__init__(
            "The model's answer was empty, even after it was asked again. Retry the task, or use "
            "another model."
        )


class TooLong(UnusableAnswer):
    code = "OUTPUT_TOO_LONG"
    note = (
        f"Your answer is too long and cannot be used. Answer again, completely, in at most "
        f"{MAX_TEXT} characters."
    )

    def __init__(self, length: int) -> None:
        super().__init__(
            f"The model's answer has {length} characters, after an answer that was also unusable. "
            f"The maximum is {MAX_TEXT}. Ask for a shorter answer, or divide the task."
        )
        self.length = length


def problem_with_summary(response: ModelResponse) -> UnusableAnswer | None:
    """Why a response cannot replace earlier steps, if it cannot."""
    if response.finish_reason == "length":
        return CutOff()
    return None if (response.text or "").strip() else Empty()


def problem_with(response: ModelResponse) -> UnusableAnswer | None:
    """Why a response without tool calls cannot be the task's output, if it cannot."""
    text = response.text or ""
    if response.finish_reason == "length":
        return CutOff()
    if is_empty(response):
        return Empty()
    return TooLong(len(text)) if len(text) > MAX_TEXT else None


def is_refused_summary(row: Step) -> bool:
    """Whether the call is an unusable summary. The second one in a row ends the run."""
    return row.kind == "summary" and row.is_refused
