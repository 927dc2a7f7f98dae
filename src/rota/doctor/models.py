"""The models: whether they can be called, and whether they answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from rota.agents.model import Agent
from rota.doctor.finding import Finding, detail, failed, ok
from rota.platform.model_choice import ModelChoice
from rota.platform.settings import Settings
from rota.runs import model_clients
from rota.runs.model_errors import GiveUp, classify_error
from rota.runs.model_names import configured
from rota.runs.model_problems import problems

CALL_TIMEOUT_S = 60.0
# Models that think before they answer need more than the answer has.
MAX_TOKENS = 256
QUESTION = "Reply with the word OK."


async def check_models(
    settings: Settings, agents: Sequence[Agent] | None, *, call: bool
) -> AsyncIterator[Finding]:
    names = configured(settings.models, settings.model_url)
    if not names:
        yield failed(
            "models",
            "No model is configured, so no task can run. Set ROTA_MODELS for the workers, for "
            'example {"default": {"provider": "openai", "model": "gpt-5", "apiKey": "…"}}.',
        )
        return
    for agent in agents or ():
        if agent.model not in names:
            yield failed(
                "models",
                f"The agent {agent.name} uses the model {agent.model!r}, which ROTA_MODELS does "
                "not have. Add it, or change the agent.",
            )
    wrong = problems(settings.models)
    for name, problem in wrong.items():
        yield failed("models", f"ROTA_MODELS: {name}: {problem}")
    usable = {name: choice for name, choice in settings.models.items() if name not in wrong}
    if not call:
        yield ok("models", f"{len(usable)} usable; none was called")
        return
    for name, choice in usable.items():
        for each in (choice, *choice.fallbacks):
            yield await _call(name, each)


async def _call(name: str, choice: ModelChoice) -> Finding:
    """One short question. It costs a fraction of a cent."""
    question: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(QUESTION)])]
    settings = cast(ModelSettings, choice.settings | {"max_tokens": MAX_TOKENS})
    started = time.monotonic()
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            model = model_clients.create(choice)
            await model.request(question, settings, ModelRequestParameters())
    except Exception as error:
        reason = classify_error(error)
        fix = "" if isinstance(reason, GiveUp) else " Check baseUrl, the network and the provider."
        said = detail(reason).replace(", then retry the task from the failed step", "")
        return failed("models", f"{name} ({choice.model}) does not answer: {said}{fix}")
    return ok("models", f"{name} ({choice.model}) answered in {time.monotonic() - started:.1f} s")
