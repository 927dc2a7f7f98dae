"""The way from signing in to a decision in Firefox. The other tests use Chromium."""

import os
import re
from pathlib import Path

import pytest

from tests.e2e.firefox import Firefox, program
from tests.e2e.office import Office

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("ROTA_TEST_FIREFOX"), reason="slow; `make firefox` runs it"
    ),
    pytest.mark.skipif(
        program() is None,
        reason="Firefox is not installed, so the dashboard was NOT tested in it: "
        "apt-get install firefox-esr",
    ),
]


async def test_a_person_signs_in_edits_approves_reads_the_timeline_and_signs_out(
    office: Office, tmp_path: Path
) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    async with Firefox.start(tmp_path) as firefox:
        await firefox.open(f"{office.service.settings.public_url}/{person.account}")
        await firefox.click("button", re.compile("^Continue with"))
        await firefox.write("Another email address", f"{person.subject}@example.test")
        await firefox.click("button", "Continue")

        await firefox.see("heading", "Inbox")
        await firefox.click("link", "Reply to ticket T-4821 and mark it as solved")
        await firefox.write(re.compile("^Message"), "Hello Mina, please try again.")
        await firefox.see("button", "Approve with 1 edit")
        await firefox.read()
        await firefox.click("button", "Approve with 1 edit")
        await firefox.click("link", "View task")
        await firefox.see("row", re.compile("edited"))
        await office.runner.waiting(person, task, "output")
        sent = await office.reply(person, task)
        assert sent is not None
        assert sent["message"] == "Hello Mina, please try again."

        await firefox.click("button", re.compile("Account and settings"))
        await firefox.click("menuitem", "Sign out")
        await firefox.see("heading", "Sign in to Rota")
        assert not firefox.errors
