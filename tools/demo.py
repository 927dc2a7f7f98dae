"""`rota dev` for the tools that look at the dashboard, and Ada, who uses it."""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from playwright.sync_api import Page, expect

PORT_WEBHOOK = 27_439
TIMEOUT_S = 60.0
# Ada's phone, as her list of sessions shows it.
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1"
)


@contextmanager
def rota_dev(port: int, *options: str) -> Iterator[str]:
    """`rota dev` in a new folder. Yields the address of the service."""
    with tempfile.TemporaryDirectory(prefix="rota-screenshots-") as folder:
        command = [sys.executable, "-m", "rota.cli", "dev", "--data", f"{folder}/data"]
        start = [*command, "--port", str(port), "--detach", "--model", "demo", *options]
        try:
            subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
            yield f"http://127.0.0.1:{port}"
        finally:
            subprocess.run([*command, "--stop"], check=True, stdout=subprocess.DEVNULL)


class Api:
    """Ada, in one account, over HTTP."""

    def __init__(self, base: str, account: str | None = None) -> None:
        issuer = f"http://127.0.0.1:{int(base.rsplit(':', 1)[1]) + 6}"
        person = {"sub": "ada", "email": "ada@example.test", "name": "Ada Lovelace"}
        given = httpx.post(f"{issuer}/dev/token", json=person).json()
        answer = httpx.post(
            f"{base}/api/auth/session",
            json={"idToken": given["idToken"]},
            headers={"User-Agent": PHONE},
        )
        headers = {"Authorization": f"Bearer {answer.json()['token']}"}
        self._client = httpx.Client(base_url=base, headers=headers, timeout=TIMEOUT_S)
        accounts = self.get("/api/me")["accounts"]
        self.personal = next(each["id"] for each in accounts if each["kind"] == "personal")
        self.company = next((each["id"] for each in accounts if each["kind"] == "company"), "")
        self.account = account or self.company or self.personal
        self._client.headers["X-Service-Account"] = self.account

    def get(self, path: str, **query: Any) -> Any:
        return self._client.get(path, params=query).raise_for_status().json()

    def post(self, path: str, body: Any) -> Any:
        return self._client.post(path, json=body).raise_for_status().json()

    def task(self, name: str) -> Any:
        tasks = self.get("/api/tasks", limit=100)["tasks"]
        return next(task for task in tasks if task["name"] == name)

    def until(self, task: str, *statuses: str) -> str:
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            status: str = self.get(f"/api/tasks/{task}")["task"]["status"]
            if status in statuses:
                return status
            time.sleep(0.2)
        raise TimeoutError(f"{task} did not become {' or '.join(statuses)}.")

    def approve_to_the_end(self, task: str) -> None:
        while self.until(task, "WAITING_APPROVAL", "COMPLETED") != "COMPLETED":
            review = self.get(f"/api/tasks/{task}/review")["review"]
            shown = {"number": review["number"], "digest": review["digest"]}
            self.post(f"/api/tasks/{task}/approve", {"review": shown})


def sign_in(page: Page, base: str) -> None:
    page.goto(base)
    page.get_by_role("button", name="Continue with").click()
    page.get_by_role("button", name="Ada").click()
    page.wait_for_url("**/acct_*")
    # The address of the first screen says that the session is stored.
    expect(page.get_by_role("heading", level=1)).to_be_visible()


class Receiver(BaseHTTPRequestHandler):
    """An endpoint that accepts every delivery of a webhook."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def webhook(api: Api) -> str:
    """A webhook whose endpoint runs until this program ends."""
    server = ThreadingHTTPServer(("127.0.0.1", PORT_WEBHOOK), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{PORT_WEBHOOK}/webhooks/rota"
    created = api.post("/api/webhooks", {"url": url, "description": "Warehouse"})
    return str(created["webhook"]["id"])
