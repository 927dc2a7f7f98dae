"""GET /api/audit: who sees the trail, what an entry says, filters, pages and the export."""

import json
from pathlib import Path
from typing import Any

import pytest

from rota.audit import export, heads
from rota.platform.signatures import NotSigned, Signer, verified
from tests.assertions import assert_error, assert_invalid
from tests.audit.world import rota
from tests.companies.world import busy_company
from tests.service import Person, Service
from tests.tasks.world import newcomer

NDJSON = {"Accept": "application/x-ndjson"}


async def trail(person: Person, query: str = "", **headers: str) -> dict[str, Any]:
    response = await person.get(f"/api/audit{query}", headers=headers)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def keys_of(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await service.http.get("/.well-known/audit-keys.json")).json()[
        "keys"
    ]
    return found


async def test_an_entry_says_who_did_what_from_where(service: Service) -> None:
    person = await service.sign_in()
    made = await person.post("/api/tasks", {"name": "A"}, headers={"X-Request-Id": "my-request"})
    sessions = (await person.get("/api/auth/sessions")).json()["sessions"]
    newest = (await trail(person))["entries"][0]
    assert newest == {
        "sequence": newest["sequence"],
        "at": newest["at"],
        "actor": "user",
        "userId": f"user_{person.user_id.hex}",
        "via": sessions[0]["id"],
        "action": "task.created",
        "resource": made.json()["task"]["id"],
        "address": "127.0.0.1",
        "requestId": "my-request",
        "actorName": None,
        "details": newest["details"],
        "erased": False,
        "hash": newest["hash"],
    }
    assert newest["details"]["status"] == "PENDING"


async def test_a_key_is_named_and_its_user_too(service: Service) -> None:
    person = await newcomer(service)
    await person.post("/api/tasks", {"name": "A"})
    [entry] = (await trail(person))["entries"]
    assert (entry["actor"], entry["userId"]) == ("key", f"user_{person.user_id.hex}")
    assert entry["via"].startswith("key_")


async def test_filters_combine_and_pages_have_a_total(service_a: Service) -> None:
    person = await newcomer(service_a)
    ids = []
    for number in range(5):
        made = await person.post("/api/tasks", {"name": str(number), "status": "RUNNING"})
        ids.append(made.json()["task"]["id"])
        done = await person.request("PATCH", f"/api/tasks/{ids[-1]}", json={"status": "COMPLETED"})
        assert done.status_code == 200
    await person.request("PATCH", "/api/credits/settings", json={"alertBelowCents": 5})
    whole = await trail(person, "?limit=100")
    assert whole["total"] == whole["head"]["sequence"] == len(whole["entries"])
    numbers = [each["sequence"] for each in whole["entries"]]
    assert numbers == sorted(numbers, reverse=True)
    assert whole["head"]["hash"] == whole["entries"][0]["hash"]
    page = await trail(person, "?limit=2&offset=3")
    assert page["entries"] == whole["entries"][3:5]
    for query, expected in (
        ("?action=task.completed", 5),
        ("?action=credits", 1),
        ("?action=task.completed,credits", 6),
        (f"?resource={ids[0]}&action=task.created", 1),
        ("?actor=key&action=task.completed", 5),
        ("?actor=agent", 0),
        (f"?userId=user_{person.user_id.hex}&action=credits", 1),
        ("?userId=user_unknown", 0),
        ("?from=2020-01-01T00:00:00Z&action=credits", 1),
        ("?to=2020-01-01T00:00:00Z", 0),
        (f"?from={whole['entries'][0]['at']}&action=credits", 1),
    ):
        found = await trail(person, query)
        assert (found["total"], len(found["entries"])) == (expected, expected), query
    for query in ("?action=Task", "?action=a.b.c", "?actor=nobody", "?from=yesterday", "?x=1"):
        assert_error(await person.get(f"/api/audit{query}"), 400, "VALIDATION_ERROR")


async def test_only_owners_and_admins_of_a_company_read_it(service: Service) -> None:
    company = await busy_company(service)
    for role, status in (("admin", 200), ("member", 403)):
        person = await company.join(role=role)
        response = await person.get("/api/audit", headers=company.selected)
        assert response.status_code == status, response.text
    found = await trail(company.owner, **company.selected)
    actions = [each["action"] for each in found["entries"]]
    assert actions.count("member.added") == 2
    assert actions[-1] == "company.created"


async def test_who_removes_a_member_is_known_even_if_another_account_is_selected(
    service: Service,
) -> None:
    company = await busy_company(service)
    member = await company.join()
    # An account that the owner cannot select: routes of companies ignore it.
    lost = {"X-Service-Account": f"acct_{member.user_id.hex}"}
    removed = await company.owner.delete(company.member_path(member), headers=lost)
    assert removed.status_code == 200, removed.text
    newest = (await trail(company.owner, "?limit=1", **company.selected))["entries"][0]
    assert (newest["action"], newest["actor"]) == ("member.removed", "user")
    assert newest["userId"] == f"user_{company.owner.user_id.hex}"
    assert newest["via"].startswith("sess_")
    assert newest["resource"] == f"user_{member.user_id.hex}"


async def test_a_key_needs_the_scope_and_does_not_get_it_by_default(service_a: Service) -> None:
    person = await service_a.sign_in()
    for scopes, status in ((None, 403), (["audit:read"], 200)):
        made = await person.post(
            "/api/keys", {"name": "k"} | ({"scopes": scopes} if scopes else {})
        )
        secret = {"Authorization": f"Bearer {made.json()['secret']}"}
        response = await service_a.http.get("/api/audit", headers=secret)
        assert response.status_code == status, response.text


async def test_another_account_is_not_visible(service_a: Service) -> None:
    first, second = await newcomer(service_a), await newcomer(service_a)
    made = await first.post("/api/tasks", {"name": "A"})
    found = await trail(second, f"?resource={made.json()['task']['id']}")
    assert (found["entries"], found["head"]["sequence"]) == ([], 0)


async def test_a_head_is_signed_with_a_published_key(service_a: Service) -> None:
    person = await newcomer(service_a)
    await person.post("/api/tasks", {"name": "A"})
    head, keys = (await trail(person))["head"], await keys_of(service_a)
    account_id, place, digest = heads.read(head["jws"], keys)
    assert (account_id, place, digest.hex()) == (person.user_id, head["sequence"], head["hash"])
    protected, payload, signature = head["jws"].split(".")
    with pytest.raises(NotSigned, match="not valid"):
        heads.read(f"{protected}.{payload[:-4]}AAAA.{signature}", keys)
    with pytest.raises(NotSigned, match="not among the known keys"):
        heads.read(head["jws"], [])


async def test_an_export_has_the_whole_trail_and_can_be_verified_offline(
    service_a: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PAGE", 7)
    person = await newcomer(service_a)
    for number in range(20):
        await person.post("/api/tasks", {"name": str(number)})
    refused = await person.get("/api/audit?action=key", headers=NDJSON)
    assert_invalid(refused, "action")
    response = await person.get("/api/audit", headers=NDJSON)
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = response.text.splitlines()
    assert [json.loads(line).get("sequence") for line in lines] == [*range(1, 21), None]
    (tmp_path / "keys.json").write_text(json.dumps({"keys": await keys_of(service_a)}))

    async def verify(text: list[str]) -> tuple[int, str]:
        (tmp_path / "trail").write_text("".join(f"{line}\n" for line in text))
        options = ("--file", str(tmp_path / "trail"), "--keys", str(tmp_path / "keys.json"))
        result = await rota(service_a, "admin", "audit", "verify", *options)
        return result.exit_code, result.output

    code, output = await verify(lines)
    assert code == 0, output
    assert "20 entries" in output
    assert "no problems" in output
    changed = lines[4].replace("task.created", "task.deleted")
    for wrong, message in (
        ([*lines[:4], changed, *lines[5:]], "was changed"),
        ([*lines[:4], *lines[5:]], "is missing"),
        ([lines[1], lines[0], *lines[2:]], "missing"),
        ([*lines[:19], lines[20]], "missing"),
        (lines[:20], "not complete"),
        (lines[20:], "missing"),
        (["{}", *lines], "is not an audit entry"),
        ([*lines, lines[0]], "follows the head"),
        ([*lines[:20], lines[20].replace(':"', ':"x')], "cannot be trusted"),
    ):
        code, output = await verify(wrong)
        assert code == 1, output
        assert message in output


def test_old_keys_stay_published() -> None:
    before, after = Signer(b"1" * 32), Signer(b"2" * 32)
    signed = before.sign("test", {"n": 1})
    rotated = Signer(b"2" * 32, (before.public_keys()[0]["x"],))
    assert rotated.public_keys() == [*after.public_keys(), *before.public_keys()]
    assert verified(signed, "test", rotated.public_keys()) == {"n": 1}
    with pytest.raises(NotSigned, match="of the kind other"):
        verified(signed, "other", rotated.public_keys())
