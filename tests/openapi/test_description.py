"""The OpenAPI description is valid, complete, and the same as the files in `openapi/`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs
import pytest
import schemathesis

from rota.app import create_app
from rota.platform.settings import Settings
from tests.service import Service

FOLDER = Path(__file__).parents[2] / "openapi"
VARIANTS: tuple[Literal["a", "b"], ...] = ("a", "b")
JSON = "application/json"
UNLIMITED = ("/health/", "/metrics", "/.well-known/")
HEADERS = {
    *("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"),
    *("X-Request-Id", "Api-Version"),
}


def describe(variant: Literal["a", "b"]) -> dict[str, Any]:
    return create_app(Settings(variant=variant)).openapi()


@pytest.fixture(scope="module", params=VARIANTS)
def description(request: pytest.FixtureRequest) -> dict[str, Any]:
    return describe(request.param)


def operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in description["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def shapes(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON that goes in and comes out, each by a name."""
    if body := operation.get("requestBody"):
        yield "request", body["content"][JSON]
    for status, response in operation["responses"].items():
        if shape := response.get("content", {}).get(JSON):
            yield status, shape


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_files_in_the_repository_are_what_the_service_says(variant: Literal["a", "b"]) -> None:
    file = FOLDER / f"variant-{variant}.json"
    assert json.loads(file.read_text()) == describe(variant), (
        f"the description has changed; if that is meant, renew {file.name} with: make openapi"
    )


async def test_the_service_serves_it(service: Service) -> None:
    served = (await service.http.get("/openapi.json")).json()
    expected = create_app(service.settings).openapi()
    assert served == json.loads(json.dumps(expected))


def test_it_is_valid_openapi(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    schemathesis.openapi.from_dict(description).validate()
    names = [operation["operationId"] for _, _, operation in operations(description)]
    assert len(names) == len(set(names))


def test_every_operation_says_what_it_is_for(description: dict[str, Any]) -> None:
    for method, path, operation in operations(description):
        assert operation["summary"], (method, path)
        assert operation["tags"], (method, path)
        for parameter in operation["parameters"]:
            assert "$ref" in parameter or parameter["schema"], (method, path)


def test_every_operation_lists_every_status_that_it_can_answer(
    description: dict[str, Any],
) -> None:
    for method, path, operation in operations(description):
        found = operation["responses"].keys()
        wanted = {"400", "500", "503"}
        if not path.startswith(UNLIMITED):
            wanted |= {"429"}
        if "requestBody" in operation:
            wanted |= {"413", "415"}
        if "security" in operation:
            wanted |= {"401"}
        if "{" in path:
            wanted |= {"404"}
        assert found >= wanted, (method, path)
        assert "422" not in found, (method, path)
        assert any(status < "300" for status in found), (method, path)


def test_every_response_has_a_description_headers_and_a_shape(
    description: dict[str, Any],
) -> None:
    for method, path, operation in operations(description):
        for status, response in operation["responses"].items():
            case = (method, path, status)
            assert response["description"], case
            assert response["headers"].keys() >= HEADERS, case
            assert ("Retry-After" in response["headers"]) == (status == "429"), case
            if status == "304":
                assert "content" not in response, case
                continue
            for content in response["content"].values():
                assert content["schema"], case


def test_every_shape_has_an_example_that_fits_it(description: dict[str, Any]) -> None:
    for method, path, operation in operations(description):
        for name, shape in shapes(operation):
            whole = {"components": description["components"], **shape["schema"]}
            errors = [
                error.message
                for error in jsonschema_rs.Draft202012Validator(
                    whole, validate_formats=True
                ).iter_errors(shape["example"])
            ]
            assert errors == [], (method, path, name, shape["example"])


def test_errors_have_the_envelope_and_only_rate_limits_another(
    description: dict[str, Any],
) -> None:
    for method, path, operation in operations(description):
        for status, shape in shapes(operation):
            if status.isdecimal() and status >= "400" and path != "/health/ready":
                wanted = {"400": "ValidationError", "429": "RateLimited"}.get(status, "Error")
                assert shape["schema"]["$ref"].endswith(f"/{wanted}"), (method, path, status)


def test_being_unavailable_has_its_own_shape(description: dict[str, Any]) -> None:
    shape = description["paths"]["/health/ready"]["get"]["responses"]["503"]["content"][JSON]
    assert shape["schema"]["$ref"].endswith("/ReadyResponse")
    assert shape["example"]["status"] == "unavailable"


def test_bounds_are_in_the_words_of_json_schema(description: dict[str, Any]) -> None:
    parameters = description["paths"]["/api/tasks"]["get"]["parameters"]
    (limit,) = [p["schema"] for p in parameters if p.get("name") == "limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 50)
    text = json.dumps(description)
    assert '"ge"' not in text
    assert '"le"' not in text


async def test_it_says_who_must_authenticate(service: Service) -> None:
    description = (await service.http.get("/openapi.json")).json()
    for method, path, operation in operations(description):
        url = path.replace("{id}", f"task_{0:032x}").replace("{name}", "nobody")
        answer = await service.http.request(method.upper(), url)
        assert (answer.status_code == 401) == ("security" in operation), (method, path)
