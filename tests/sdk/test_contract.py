"""The SDK covers the whole API, and both of its clients are the same."""

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rota.platform.errors import CODES, ApiError
from rota_sdk import AsyncRota, Rota, errors, models
from rota_sdk._generated import operations
from rota_sdk._operation import Operation
from tests.openapi.document import FOLDER, VARIANTS, resolved

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdks" / "python"
RESOURCES = SDK / "src" / "rota_sdk" / "_async"

# What a method does not take by its own name. Pages follow one another by themselves, `quote` is
# a method instead of `dryRun`, `agent` is the same as `assignedAgent`, and there are no cookies.
BY_OTHER_MEANS = {"limit", "offset", "page", "dry_run", "assigned_agent", "cookie", "truncated"}
# Parameters of a path whose name is that of the resource.
RESOURCES_BY_ID = {"task", "schedule", "server", "key", "session", "company", "rule", "webhook"}
NAMED = {"user_id": "member", "invitation_id": "invitation"}

DESCRIPTIONS = {v: json.loads((FOLDER / f"variant-{v}.json").read_text()) for v in VARIANTS}
OPERATIONS = {
    operation["operationId"]: (variant, method, path, operation)
    for variant, description in DESCRIPTIONS.items()
    for path, item in description["paths"].items()
    for method, operation in item.items()
}


def methods() -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The methods that use each operation."""
    found: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for file in [RESOURCES / "client.py", *(RESOURCES / "resources").glob("*.py")]:
        for method in ast.walk(ast.parse(file.read_text())):
            if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in ast.walk(method):
                if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "operations":
                    found.setdefault(node.attr, []).append(method)
    return found


METHODS = methods()


def snake(name: str) -> str:
    found = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    return "from_" if found == "from" else found


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_has_a_method_that_takes_all_it_can_be_given(name: str) -> None:
    variant, http_method, path, operation = OPERATIONS[name]
    described: Operation[Any] = getattr(operations, name)
    assert (described.method, described.path) == (http_method.upper(), path)
    assert name in METHODS, f"No method of the SDK calls {name}."
    taken = {
        argument.arg
        for method in METHODS[name]
        for argument in (*method.args.args, *method.args.kwonlyargs)
    }
    description = DESCRIPTIONS[variant]
    given = [resolved(description, part) for part in operation.get("parameters", ())]
    wanted = {snake(each["name"]) for each in given if each["in"] == "query"}
    in_path = [snake(each["name"]) for each in given if each["in"] == "path"]
    wanted |= {NAMED.get(each, each) for each in in_path}
    if any(each["name"] == "Idempotency-Key" for each in given):
        wanted.add("idempotency_key")
    wanted |= {snake(field) for field in body_fields(description, operation)}
    if "id" in wanted:
        assert taken & RESOURCES_BY_ID
        wanted.remove("id")
    assert wanted - BY_OTHER_MEANS <= taken


def body_fields(description: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None:
        schema = content["schema"]
        [reference] = [each for each in schema.get("anyOf", [schema]) if "$ref" in each]
        yield from resolved(description, reference)["properties"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_example_of_a_response_can_be_read(name: str) -> None:
    variant, _, _, operation = OPERATIONS[name]
    responses = operation["responses"]
    content = (responses.get("201") or responses["200"])["content"].get("application/json", {})
    kind = getattr(operations, name).response
    for example in content.get("examples", {}).values():
        value = resolved(DESCRIPTIONS[variant], example)["value"]
        read = kind.model_validate_json(json.dumps(value))
        assert not read.model_extra


def test_the_synchronous_client_has_the_same_methods_and_arguments() -> None:
    one, other = surface(AsyncRota(base_url="http://x")), surface(Rota(base_url="http://x"))
    assert one == other
    assert len(one) > 70


def surface(client: Any) -> dict[str, list[str]]:
    """Every public method with its arguments."""
    found = {}
    parts = {"": client} | {n: v for n, v in vars(client).items() if not n.startswith("_")}
    for part, resource in parts.items():
        for name, method in inspect.getmembers(resource, inspect.ismethod):
            if not name.startswith("_"):
                public = name.replace("aclose", "close")
                found[f"{part}.{public}"] = list(inspect.signature(method).parameters)
    return found


def test_the_generated_files_are_up_to_date() -> None:
    done = subprocess.run(
        (sys.executable, "-m", "generator", "--check"), cwd=SDK, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_code_of_the_service_has_a_class() -> None:
    import rota.app  # noqa: F401 - imports every module that defines an error

    def codes(kind: type[ApiError]) -> Iterator[str]:
        if kind.code is not None:
            yield kind.code
        for sub in kind.__subclasses__():
            yield from codes(sub)

    of_service = set(codes(ApiError)) | set(CODES.values()) | {"RATE_LIMIT_EXCEEDED"}
    assert of_service - set(errors.BY_CODE) == set()


def test_a_newer_service_can_send_fields_and_values_that_the_sdk_does_not_know() -> None:
    example = DESCRIPTIONS["a"]["components"]["examples"]["TaskResponse"]["value"]["task"]
    task = models.Task.model_validate({**example, "status": "PAUSED", "mood": "good"})
    assert task.status == "PAUSED"  # type: ignore[comparison-overlap]
    assert task.model_extra == {"mood": "good"}


def test_a_body_refuses_a_field_that_does_not_exist() -> None:
    with pytest.raises(ValidationError, match="agnet"):
        models.BatchTask.model_validate({"name": "A task", "agnet": "process-writer"})
    assert models.BatchTask.model_validate({"name": "A", "projectId": "p"}).project_id == "p"
    assert models.BatchTask.model_validate({"name": "A", "project_id": "p"}).project_id == "p"
