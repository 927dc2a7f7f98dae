"""`rota admin … --json`."""

import json
from typing import Any

from rota.platform import ids
from tests.cli.test_admin import ACCOUNT, admin
from tests.service import Service, environment


async def test_commands_of_operators_print_json(office: Service) -> None:
    settings = environment(office.settings)
    owner, member = await office.sign_in(), await office.sign_in()

    async def printed(*arguments: str) -> Any:
        result = await admin(settings, *arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    owner_id, member_id = (ids.to_wire("user", each.user_id) for each in (owner, member))
    account = (await printed("companies", "create", "Acme", "--owner", owner_id))["account"]
    joined = await printed("companies", "set-member", account, member_id)
    assert (joined["role"], joined["approver"]) == ("member", False)
    tier = "business" if office.variant == "b" else "advanced"
    changed = await printed("accounts", "set-tier", account, tier)
    assert changed == {"account": account, "tier": tier.upper()}
    checked = await printed("ledger", "verify", "--account", account)
    assert checked == {"accounts": 1, "differences": []}
    assert (await printed("signing-keys", "rotate"))["kid"]
    rotated = await printed("secrets", "rotate")
    assert rotated
    assert all(each["unreadable"] == 0 for each in rotated.values())


async def test_errors_of_operator_commands_are_json_too(office: Service) -> None:
    settings = environment(office.settings)
    unknown = await admin(settings, "keys", "create", "K", "--account", ACCOUNT, "--json")
    assert unknown.exit_code == 1
    assert json.loads(unknown.stderr)["error"]["message"] == f"Account {ACCOUNT} not found."
    wrong = await admin({**settings, "ROTA_PORT": "0"}, "ledger", "verify", "--json")
    assert wrong.exit_code == 2
    assert "ROTA_PORT" in json.loads(wrong.stderr)["error"]["message"]
