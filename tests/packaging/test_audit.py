"""`make audit` fails on a finding, and never reports success for what it could not check."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.service import free_port
from tools.audit import Audit, read_report, run_pip_audit, summarize

LOCK = f"alembic==1.20.1 --hash=sha256:{'0' * 64}\nmako==1.4.3 --hash=sha256:{'0' * 64}\n"
FINDING = {
    "id": "TEST-2026-1",
    "summary": "A template can run any code.",
    "affected": [
        {
            "package": {"name": "mako", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.4.4"}]}],
        }
    ],
}


class Database(BaseHTTPRequestHandler):
    """Answers as the OSV database does, and knows one vulnerability, in mako."""

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = question["package"]["name"] == "mako"
        body = json.dumps({"vulns": [FINDING]} if known else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def database_url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Database) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.lock"
    file.write_text(LOCK)
    return file


def test_a_finding_fails_and_is_named(database_url: str, lock: Path) -> None:
    audit = run_pip_audit(lock, "--vulnerability-service=osv", f"--osv-url={database_url}")
    status, text = summarize(audit, must_reach=False)
    assert status == 1
    assert text == ("Checked 2 packages: 1 findings.\nmako 1.4.3: TEST-2026-1 (fixed in 1.4.4)")


def test_an_unreachable_database_is_reported_and_fails_only_on_request(lock: Path) -> None:
    audit = run_pip_audit(
        lock, "--vulnerability-service=osv", f"--osv-url=http://127.0.0.1:{free_port()}/"
    )
    for must_reach in (False, True):
        status, text = summarize(audit, must_reach=must_reach)
        assert status == int(must_reach)
        assert text.startswith("NOT CHECKED: the vulnerability database cannot be reached")


def test_a_lock_that_cannot_be_read_fails(tmp_path: Path) -> None:
    broken = tmp_path / "requirements.lock"
    broken.write_text("alembic==1.20.1\n")
    with pytest.raises(SystemExit) as exit_info:
        run_pip_audit(broken)
    assert exit_info.value.code == 2


def test_a_report_in_which_every_package_was_skipped_is_not_a_success() -> None:
    skipped = {"name": "mako", "skip_reason": "Dependency not found on PyPI"}
    audit = read_report({"dependencies": [skipped]})
    assert summarize(audit, must_reach=True)[0] == 1
    assert "NOT CHECKED" in summarize(audit, must_reach=False)[1]


def test_packages_that_the_database_does_not_know_are_named() -> None:
    status, text = summarize(Audit(("alembic",), ("mako",), ()), must_reach=True)
    assert status == 0
    assert "unknown to the database: mako" in text
