"""A run with the small local model."""

from pathlib import Path

import pytest

from rota.dev.stack import Stack
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted


@pytest.mark.long
async def test_the_local_model_answers_and_the_timeline_has_its_tokens_and_time(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = Path(tmp_path_factory.mktemp("model"))
    async with (
        Stack(data, components=("model",), durable=False) as local,
        Runner.start(
            stack,
            scripted,
            "runs_local",
            data / "worker",
            models="{}",
            model_url=local.endpoints.model_url,
            run_heartbeat_s=15.0,
        ) as runner,
    ):
        person = await runner.newcomer()
        task = await runner.begin(person, "writer", "Name three colours.")
        task = await runner.until(person, task, "COMPLETED", "WAITING_APPROVAL", deadline_s=120)
        steps, _ = await runner.timeline(person, task)
        model_call = steps[0]
        assert model_call["kind"] == "model"
        assert model_call["name"] == "smollm2"
        assert model_call["inputTokens"] > 10
        assert model_call["outputTokens"] > 0
        assert model_call["durationMs"] > 0
        assert (model_call["priceVersion"], model_call["costUsd"]) == ("free", "0.000000")
        if task["status"] == "COMPLETED":
            assert task["output"]
