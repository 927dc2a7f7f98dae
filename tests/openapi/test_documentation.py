"""Everything in the description is explained, and every example is valid."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.openapi.document import (
    VARIANTS,
    Json,
    describe,
    errors,
    operations,
    resolved,
    subschemas,
)

ENUMS = {
    *(
        "TaskStatus",
        "Gate",
        "ReviewState",
        "Shaping",
        "ItemDecision",
        "RetryFrom",
        "Overlap",
        "ScheduleOutcome",
    ),
    *("CredentialKind", "Scope", "AccountKind", "Role", "Tier", "Variant", "ApiVersion"),
    *("ServerStatus", "Transport", "SubscriptionStatus"),
    *("TransactionKind", "AllowanceStatus", "GroupBy", "ToolApproval"),
    *("StepKind", "StepState", "StepOutcome", "Readiness", "RateLimitCode"),
    *("CutText", "StepCut", "AuditActor", "Approvers", "RuleState", "ErasureState"),
    *("WebhookState", "WebhookDisabledReason", "DeliveryOutcome"),
    *("NotificationKind", "NotificationChannel", "MessageContent", "ChatService"),
    *("MailTransport", "DeliveryState"),
}


@pytest.fixture(scope="module", params=VARIANTS)
def description(request: pytest.FixtureRequest) -> Json:
    return describe(request.param)


def every_schema(description: Json) -> Iterator[tuple[str, Json]]:
    for name, schema in description["components"]["schemas"].items():
        yield from subschemas(schema, name)


def every_parameter(description: Json) -> Iterator[tuple[str, Json]]:
    yield from description["components"]["parameters"].items()
    yield from description["components"]["headers"].items()
    for method, path, operation in operations(description):
        for parameter in operation["parameters"]:
            yield f"{method} {path}", resolved(description, parameter)


def fields(description: Json) -> Iterator[tuple[str, Json]]:
    for where, schema in every_schema(description):
        for name, field in schema.get("properties", {}).items():
            yield f"{where}.{name}", field


def has_example(description: Json, schema: Json) -> bool:
    """Whether a field shows a value: itself, or through the schemas that it refers to."""
    if "examples" in schema:
        return True
    if "$ref" in schema:
        target = resolved(description, schema)
        return bool({"properties", "allOf", "examples"} & target.keys())
    inner = schema.get("anyOf", [schema["items"]] if "items" in schema else [])
    return bool(inner) and has_example(description, inner[0])


def is_sentence(text: str) -> bool:
    return text[0] == text[0].lstrip() and text.rstrip().endswith((".", "?", "```"))


def test_every_schema_and_every_field_has_a_description(description: Json) -> None:
    for name, schema in description["components"]["schemas"].items():
        assert is_sentence(schema.get("description", " ")), name
    for where, field in fields(description):
        assert is_sentence(field.get("description", " ")), where


def test_every_parameter_and_header_has_a_description(description: Json) -> None:
    for where, parameter in every_parameter(description):
        assert is_sentence(parameter.get("description", " ")), (where, parameter)


def test_every_operation_has_a_summary_and_a_description(description: Json) -> None:
    for method, path, operation in operations(description):
        assert operation["summary"], (method, path)
        assert not operation["summary"].endswith("."), (method, path)
        assert is_sentence(operation.get("description", " ")), (method, path)


def test_every_tag_is_described(description: Json) -> None:
    used = {tag for _, _, operation in operations(description) for tag in operation["tags"]}
    assert {tag["name"] for tag in description["tags"]} == used
    for tag in description["tags"]:
        assert is_sentence(tag["description"]), tag


def test_the_service_its_server_and_its_credentials_are_described(description: Json) -> None:
    assert is_sentence(description["info"]["description"])
    for part in (*description["servers"], *description["components"]["securitySchemes"].values()):
        assert is_sentence(part["description"]), part


def test_every_field_and_every_parameter_has_an_example(description: Json) -> None:
    for where, field in fields(description):
        assert has_example(description, field), where
    for where, parameter in every_parameter(description):
        assert has_example(description, parameter["schema"]), (where, parameter)


def test_every_example_is_valid(description: Json) -> None:
    schemas = [
        *every_schema(description),
        *((where, parameter["schema"]) for where, parameter in every_parameter(description)),
    ]
    checked = 0
    for where, schema in schemas:
        for example in schema.get("examples", ()):
            checked += 1
            assert errors(description, schema, example) == [], (where, example)
    assert checked > 300


def test_every_enum_is_a_component_and_there_is_one_of_each(description: Json) -> None:
    found = dict(every_schema(description))
    inlined = [where for where, schema in found.items() if "enum" in schema and "." in where]
    assert inlined == []
    enums = {where: tuple(schema["enum"]) for where, schema in found.items() if "enum" in schema}
    assert len(set(enums.values())) == len(enums)
    assert enums.keys() <= ENUMS
    assert [name for name, values in enums.items() if "WAITING_APPROVAL" in values] == [
        "TaskStatus"
    ]
    for where, parameter in every_parameter(description):
        assert "enum" not in parameter["schema"], where


def test_shared_definitions_are_components(description: Json) -> None:
    """No error response, and no parameter that two operations have, is written out twice."""
    seen: set[str] = set()
    for method, path, operation in operations(description):
        for status, response in operation["responses"].items():
            own = status < "400" or (path, status) == ("/health/ready", "503")
            assert own or "$ref" in response, (method, path, status)
            for name, header in response.get("headers", {}).items():
                assert "$ref" in header or name == "ETag", (method, path, status, name)
        for parameter in operation["parameters"]:
            if "$ref" not in parameter:
                assert repr(parameter) not in seen, (method, path, parameter)
                seen.add(repr(parameter))


def test_no_schema_has_a_generated_title(description: Json) -> None:
    assert [where for where, schema in every_schema(description) if "title" in schema] == []


def test_every_component_is_used(description: Json) -> None:
    text = str(description)
    for kind, components in description["components"].items():
        unused: list[Any] = [
            name for name in components if f"'#/components/{kind}/{name}'" not in text
        ]
        assert kind == "securitySchemes" or unused == [], kind


def test_every_secured_operation_names_the_scope_it_needs(description: Json) -> None:
    scopes = description["components"]["schemas"]["Scope"]["enum"]
    by_session = {"logout", "list_keys", "create_key", "delete_key"}
    by_session |= {"list_sessions", "delete_session"}
    by_session |= {"create_company", "get_company", "patch_company"}
    by_session |= {"list_members", "patch_member", "delete_member", "accept_invitation"}
    by_session |= {"create_invitation", "list_invitations", "delete_invitation"}
    by_session |= {"get_invitation", "get_policies", "put_policies"}
    by_session |= {"create_rule", "list_rules", "get_rule", "delete_rule"}
    by_session |= {"export_account", "erase_account"}
    by_session |= {"get_notifications", "put_notifications", "test_notifications"}
    any_credential = {"me", "refresh_session", "list_plans"}
    for _, _, operation in operations(description):
        if "security" in operation:
            (requirement,) = operation["security"]
            if operation["operationId"] in by_session | any_credential:
                assert requirement == {"bearer": []}
                continue
            assert requirement["bearer"]
            for scope in requirement["bearer"]:
                assert scope in scopes
                assert f"`{scope}`" in operation["description"]
        if operation["operationId"] in by_session:
            assert "Needs a session token" in operation["description"]
