"""Results of tool calls that are larger together than a worker should hold in memory."""

from uuid import uuid4

from rota.runs.compaction import MAX_RESULT_CHARACTERS
from rota.runs.stored_results import MAX_RUN_CHARACTERS
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person

RESULT_CHARACTERS = 200_000
CALLS = MAX_RUN_CHARACTERS // RESULT_CHARACTERS + 1


async def test_a_run_with_large_results_keeps_of_further_ones_what_its_model_reads(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    large, short = (f"{size}-{uuid4().hex[:8]}" for size in ("large", "short"))
    text = "".join(f"{number:07d} " for number in range(RESULT_CHARACTERS // 8))
    await scripted.http.post(f"/always/{large}", json={"result": text})
    await scripted.http.post(f"/always/{short}", json={"result": text[:1_000]})
    script = await scripted.script(
        calls(*[("desk__lookup", {"ref": large})] * CALLS),
        calls(("desk__lookup", {"ref": large}), ("desk__lookup", {"ref": short})),
        calls(("read_result", {"step": 2, "call": 1, "start": 19_000})),
        says("Read."),
    )
    task = await runner.finish(person, "writer", script)

    async def result(offset: int) -> str:
        [step], _ = await runner.timeline(person, task, limit=1, offset=offset)
        assert step["outcome"] == "ok"
        assert step["truncated"] == []
        return str(step["result"])

    # Each step begins with its model call.
    assert await result(1) == text
    assert await result(CALLS) == text
    note = f"\n[truncated from {len(text)} characters]"
    kept = text[: MAX_RESULT_CHARACTERS - len(note)] + note
    assert await result(CALLS + 2) == kept
    assert await result(CALLS + 3) == text[:1_000]
    assert await result(CALLS + 5) == kept[19_000:]
    # The model reads all that is kept.
    read = (await scripted.asked(script))[2]["messages"][-2]["content"]
    assert read == kept
