"""A page of a timeline has at most about 1 MiB, however long the results of its steps are."""

import json

from rota.tasks.pages import CUT, PAGE_BYTES
from tests.service import Service
from tests.tasks.world import create, newcomer, uuid_of

STEPS = 60
RESULT = 200_000


async def test_a_page_of_long_steps_is_cut_and_one_step_is_whole(service: Service) -> None:
    person = await newcomer(service)
    task = await create(person, status="RUNNING")
    answer = {
        "parts": [
            {"part_kind": "text", "content": "b" * RESULT},
            {"part_kind": "tool-call", "tool_name": "send", "args": "c" * RESULT},
        ]
    }
    async with service.owner() as owner:
        await owner.execute(
            """
            INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, outcome,
                arguments, result, started_at)
            SELECT $1, $2, 1, n, k, CASE k WHEN 0 THEN 'model' ELSE 'tool' END, 'finished', 'x',
                'ok', CASE k WHEN 0 THEN NULL ELSE '{"short": true}'::jsonb END,
                CASE k WHEN 0 THEN $4::jsonb ELSE $5::jsonb END, now() + n * interval '1 s'
            FROM generate_series(1, $3 / 2) n, generate_series(0, 1) k
            """,
            person.user_id,
            uuid_of(task),
            STEPS,
            json.dumps(answer),
            json.dumps("a" * RESULT),
        )
    path = f"/api/tasks/{task['id']}/timeline"
    response = await person.get(f"{path}?limit=100")
    assert len(response.content) < 1.1 * PAGE_BYTES
    page = response.json()
    assert (len(page["steps"]), page["total"]) == (STEPS, STEPS)
    for step in page["steps"]:
        assert step["truncated"] == ["result"]
        if step["kind"] == "model":
            assert step["result"] == {"text": "b" * CUT, "toolCalls": ["send"]}
        else:
            assert step["arguments"] == {"short": True}
            assert step["result"] == "a" * CUT + f"\n[truncated from {RESULT} characters]"
    for offset in range(2):
        [step] = (await person.get(f"{path}?limit=1&offset={offset}")).json()["steps"]
        assert step["truncated"] == []
        whole = step["result"]["text"] if step["kind"] == "model" else step["result"]
        assert len(whole) == RESULT
