"""The documentation of runs and models matches the code."""

import json
import re
from pathlib import Path

from rota.platform import clock
from rota.platform.model_choice import ModelChoice
from rota.platform.settings import Settings
from rota.runs.models import Models
from rota.runs.prices import TokenUsage, table_price

ROOT = Path(__file__).parents[2]
RUNS = (ROOT / "docs/runs.md").read_text()
MODELS = (ROOT / "docs/models.md").read_text()


def test_the_examples_of_models_are_valid_settings() -> None:
    [example] = re.findall(r"ROTA_MODELS='(.*?)'", MODELS, re.DOTALL)
    settings = Settings(models=json.loads(example))
    assert {"default", "fast", "strong"} <= settings.models.keys()
    models = Models(settings.models, None)
    assert all(
        models.chain(name).choose().price.version.startswith("genai-prices/")
        for name in settings.models
    )
    reader = json.JSONDecoder()
    blocks = re.findall(r"```json\n(.*?)```", MODELS, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        rest = block.strip()
        while rest:
            choice, end = reader.raw_decode(rest)
            if "default" in choice:
                assert len(Models(Settings(models=choice).models, None).chain("default")) == 3
            else:
                ModelChoice.model_validate(choice)
            rest = rest[end:].strip()


def test_the_example_of_a_charge_is_right() -> None:
    now = clock.now()
    cached = TokenUsage(10_000, 1_000, cache_read_tokens=9_000)
    assert table_price("openai", "gpt-5").cost_micros(cached, now) == 12_375
    assert "**12,375**" in MODELS
    tiered = table_price("google", "gemini-2.5-pro")
    assert tiered.cost_micros(TokenUsage(200_000, 1_000), now) == 260_000
    assert tiered.cost_micros(TokenUsage(200_001, 1_000), now) == 515_003
    assert "costs 260,000 micro-dollars" in MODELS
    assert "makes it 515,003" in MODELS


def test_every_field_of_a_model_is_in_the_table() -> None:
    for field in ModelChoice.model_fields.values():
        assert f"`{field.alias}`" in MODELS


def test_every_error_code_of_a_run_is_in_the_table() -> None:
    code = r'"((?:MODEL|TOOL|RUN|STEP|TOKEN|TIME|BUDGET|CONTEXT|CONTENT|OUTPUT|EMPTY)_[A-Z_]+)"'
    used = {
        found
        for path in (ROOT / "src/rota/runs").glob("*.py")
        for found in re.findall(code, path.read_text())
    }
    assert len(used) >= 15
    assert {found for found in used if f"`{found}`" not in RUNS} == set()
