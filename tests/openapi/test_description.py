"""The OpenAPI description is valid and complete, and `openapi/` contains the current version."""

import json
from importlib.metadata import version
from typing import Any

import pytest
import schemathesis

from rota.app import create_app
from tests.openapi.document import (
    FOLDER,
    JSON,
    VARIANTS,
    VariantName,
    describe,
    errors,
    operations,
    resolved,
    shapes,
)
from tests.service import Service

UNLIMITED = ("/health/", "/metrics", "/.well-known/")
HEADERS = {
    *("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"),
    *("X-Request-Id", "Api-Version"),
}
MAX_BYTES_PER_OPERATION = 7_000


@pytest.fixture(scope="module", params=VARIANTS)
def description(request: pytest.FixtureRequest) -> dict[str, Any]:
    return describe(request.param)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_files_in_the_repository_are_current(variant: VariantName) -> None:
    file = FOLDER / f"variant-{variant}.json"
    assert json.loads(file.read_text()) == describe(variant), (
        f"the description has changed; if that is intended, update {file.name}: make openapi"
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_operation_takes_at_most_7_kilobytes(variant: VariantName) -> None:
    size = (FOLDER / f"variant-{variant}.json").stat().st_size
    count = len(list(operations(describe(variant))))
    assert size / count <= MAX_BYTES_PER_OPERATION, (size, count)


def test_its_version_is_the_version_of_the_package(description: dict[str, Any]) -> None:
    assert description["info"]["version"] == version("rota")
    assert description["info"]["license"]["identifier"] == "Apache-2.0"
    assert description["x-generated"] == "make openapi"


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
            assert resolved(description, parameter)["schema"], (method, path)


def test_every_operation_lists_every_status_that_it_can_return(
    description: dict[str, Any],
) -> None:
    for method, path, operation in operations(description):
        found = operation["responses"].keys()
        wanted = {"400", "500", "503"}
        if not path.startswith(UNLIMITED):
            wanted |= {"429"}
        if "requestBody" in operation:
            wanted |= {"408", "413", "415"}
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
        for status, found in operation["responses"].items():
            case = (method, path, status)
            response = resolved(description, found)
            assert response["description"], case
            assert response["headers"].keys() >= HEADERS, case
            assert ("Retry-After" in response["headers"]) == (status == "429"), case
            if status == "304":
                assert "content" not in response, case
                continue
            for content in response["content"].values():
                assert content["schema"], case


def test_every_body_has_examples_that_are_valid(description: dict[str, Any]) -> None:
    for method, path, operation in operations(description):
        for name, shape in shapes(description, operation):
            assert shape["examples"], (method, path, name)
            for example in shape["examples"]:
                found = errors(description, shape["schema"], example)
                assert found == [], (method, path, name, example)


def test_errors_have_the_envelope_and_only_rate_limits_another(
    description: dict[str, Any],
) -> None:
    for method, path, operation in operations(description):
        for status, shape in shapes(description, operation):
            if status.isdecimal() and status >= "400" and path != "/health/ready":
                wanted = {"400": "ValidationError", "429": "RateLimited"}.get(status, "Error")
                assert shape["schema"]["$ref"].endswith(f"/{wanted}"), (method, path, status)


def test_the_unavailable_response_has_its_own_schema(description: dict[str, Any]) -> None:
    shape = description["paths"]["/health/ready"]["get"]["responses"]["503"]["content"][JSON]
    assert shape["schema"]["$ref"].endswith("/ReadyResponse")
    assert shape["example"]["status"] == "unavailable"


def test_bounds_are_in_the_words_of_json_schema(description: dict[str, Any]) -> None:
    parameters = description["paths"]["/api/tasks"]["get"]["parameters"]
    found = [resolved(description, parameter) for parameter in parameters]
    (limit,) = [p["schema"] for p in found if p["name"] == "limit"]
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
