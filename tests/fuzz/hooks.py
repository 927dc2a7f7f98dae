"""Hooks that Schemathesis loads in its own process: signing in, and one more check."""

import os
import re
from itertools import count
from typing import Any

import httpx
import schemathesis
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.specs.openapi.checks import positive_data_acceptance

SERVICE = os.environ["FUZZ_SERVICE_URL"]
ISSUER = os.environ["FUZZ_ISSUER_URL"]
TOKEN = os.environ["FUZZ_TOKEN"]

# Only a task that the service runs can have these.
HOSTED = {"budgetCents", "deadline", "outputSchema", "dryRun"}
# `truncated` says that a list has cut the task, which cannot be sent back.
SCHEDULE = {"task.agent", "cron", "timeZone", "truncated", *(f"task.{name}" for name in HOSTED)}
# A text that a list has cut cannot be sent back.
CUT = {"logs", "actions", "output", "description", "input"}
# Rules that a schema cannot express: fields that a 400 can name although the value matches the
# schema.
RULES = {
    ("GET", "/api/agents/resolve"): {"name"},
    ("POST", "/api/auth/code"): {"issuer", "redirectUri"},
    ("POST", "/api/keys"): {"expiresAt"},
    # Rota connects to the URL to check it.
    ("POST", "/api/mcp"): {"url", "headers", "auth", "auth.token"},
    ("PATCH", "/api/mcp/{id}"): {"url", "headers", "auth", "auth.token"},
    # Rota checks the URL of a webhook, and needs one for messages in a chat.
    ("PUT", "/api/me/notifications"): {"chat.url", "chat.service"},
    ("GET", "/api/usage"): {"from", "to"},
    ("GET", "/api/credits/transactions"): {"from", "to"},
    # A field that is null changes nothing.
    ("PATCH", "/api/credits/settings"): {"body"},
    ("POST", "/api/rules"): {"expiresAt", "agent", "serverId", "tool", "arguments"},
    ("POST", "/api/schedules"): SCHEDULE,
    ("PATCH", "/api/schedules/{id}"): SCHEDULE,
    ("POST", "/api/webhooks"): {"url"},
    ("PATCH", "/api/webhooks/{id}"): {"url"},
    ("POST", "/api/webhooks/{id}/replay"): {"fromSequence"},
    ("POST", "/api/tasks/batch"): {f"tasks.{name}" for name in HOSTED},
    ("POST", "/api/tasks/{id}/fork"): {"fromStep", "model", "agentVersion"},
    ("POST", "/api/subscriptions/subscribe"): {"plan", "seats"},
    ("POST", "/api/tasks"): {"agent", "assignedAgent", "parentTaskId", *HOSTED},
    ("PATCH", "/api/tasks/{id}"): {*CUT, "deadline", "error"},
    ("POST", "/api/tasks/{id}/approve"): {"decisions"},
    # It must be the name of the account.
    ("DELETE", "/api/account"): {"name"},
}
# No schema can say which characters are visible.
INVISIBLE = "must contain a visible character"

_numbers = count()
# The token of the session in use.
_current = [TOKEN]


def _new_session() -> str:
    person = {"sub": os.environ["FUZZ_SUBJECT"], "email": "fuzz@example.test"}
    id_token = httpx.post(f"{ISSUER}/dev/token", json=person).json()["idToken"]
    url = f"{SERVICE}/api/auth/session"
    return str(httpx.post(url, json={"idToken": id_token}).json()["token"])


@schemathesis.auth(refresh_interval=None)
class Session:
    def get(self, case: Any, context: Any) -> str:
        # Logging out ends the session, so it gets a new one each time.
        return _new_session() if case.operation.path == "/api/auth/logout" else _current[0]

    def set(self, case: Any, data: str, context: Any) -> None:
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Sends each request from another address, so that the limits per address do not apply."""
    number = next(_numbers)
    case.headers = case.headers or {}
    case.headers["X-Forwarded-For"] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Signs in again after a request that ended the session, such as deleting all sessions."""
    sent = (case.headers or {}).get("Authorization")
    if response.status_code == 401 and sent == f"Bearer {_current[0]}":
        _current[0] = _new_session()


@schemathesis.check
def acceptance_except_rules(ctx: Any, response: Any, case: Any) -> None:
    """Valid data is accepted, unless it breaks a rule of the operation."""
    try:
        positive_data_acceptance(ctx, response, case)
    except RejectedPositiveData:
        rules = RULES.get((case.operation.method.upper(), case.operation.path), set())
        wrong = response.json()["error"].get("details", ())
        named = {item["field"] for item in wrong if item["message"] != INVISIBLE}
        # JSON Schema takes 5.0 for an integer. The service does not, and no schema can say so.
        others = {name for name in named if not isinstance(_value(case.body, name), float)}
        if not wrong or not all(_is_covered(name, rules) for name in others):
            raise


def _is_covered(name: str, rules: set[str]) -> bool:
    """Whether a rule names the field, or a field around it. Places in a list do not count."""
    plain = re.sub(r"\.\d+(?=\.)", "", name)
    return any(plain == rule or plain.startswith(f"{rule}.") for rule in rules)


def _value(body: Any, name: str) -> Any:
    """The value of a field such as `tasks.0.budgetCents`."""
    for part in name.split("."):
        if isinstance(body, dict):
            body = body.get(part)
        elif isinstance(body, list) and part.isdecimal() and int(part) < len(body):
            body = body[int(part)]
        else:
            return None
    return body
