"""Second person: whoever repeats an approval gets the same response, also after an answer that was
given with it."""

from typing import Any

from tests.policies.world import Office, OfficeRun, approve, because, review_of

QUESTION = ("ask_person", {"question": "To whom?"})
CALL = ("peer__send", {"text": "as asked"})
OTHER = ("peer__send", {"text": "another"})


async def test_an_approval_of_a_call_and_an_answer_can_be_repeated(
    run: OfficeRun, office: Office
) -> None:
    await office.require_second_person()
    one, other = office.approvers
    task = await run.start(office.owner)
    await run.call(QUESTION, CALL)
    for _ in range(2):
        answer = await approve(one, task)
        assert answer.status_code == 200, answer.text
        assert answer.json()["review"]["state"] == "approved"
    # Somebody else who shaped it does not seem to have approved it.
    assert "created" in because(await approve(office.owner, task))
    assert (await approve(other, task)).status_code == 200
    await run.begin()
    await run.act()
    assert [made.arguments for made in run.client.made] == [CALL[1]]


async def test_an_approval_of_a_part_can_be_repeated_while_the_rest_waits(
    run: OfficeRun, office: Office
) -> None:
    await office.require_second_person()
    one, other = office.approvers
    task = await run.start(office.owner)
    await run.call(QUESTION, CALL, OTHER)
    question, call, rest = (item["id"] for item in (await review_of(one, task))["items"])
    reply = {"question": "To whom?", "answer": "To me."}
    decisions: list[dict[str, Any]] = [{"id": question, "arguments": reply}, {"id": call}]
    for _ in range(2):
        answer = await approve(one, task, decisions=decisions)
        assert answer.status_code == 200, answer.text
    # The answer counts for what the caller has not approved yet.
    assert because(await approve(one, task, decisions=[{"id": rest}])) == ["answered"]
    assert because(await approve(one, task, decisions=[*decisions, {"id": rest}])) == ["answered"]
    assert (await approve(other, task, decisions=[{"id": rest}])).status_code == 200
