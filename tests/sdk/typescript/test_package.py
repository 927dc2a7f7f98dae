"""The npm package: complete, without dependencies, typed for its users, with examples that run."""

import asyncio
import json
import re
import tarfile

import pytest

from rota.platform.errors import CODES, ApiError
from rota.platform.idempotency import RequestInProgress
from tests.packaging.installed import REPOSITORY, tracked_files
from tests.runs.runner import Runner
from tests.sdk.any_client import url_of
from tests.sdk.typescript.package import Example, Package
from tests.sdk.typescript.programs import SDK, node, run

NODES = ("20", "24")


def test_the_package_has_every_module_and_its_types(package: Package) -> None:
    with tarfile.open(package.archive) as archive:
        names = set(archive.getnames())
    sources = [
        path.relative_to(SDK / "src").with_suffix("")
        for path in (SDK / "src").rglob("*.ts")
        if path.name != "types.gen.ts"
    ]
    modules = {f"package/dist/{each}{ending}" for each in sources for ending in (".js", ".d.ts")}
    assert modules <= names
    assert names - modules == {
        *("package/package.json", "package/README.md", "package/LICENSE"),
        *("package/dist/generated/types.gen.d.ts", "package/dist/generated/types.gen.js"),
    }


def test_the_package_has_no_dependencies(package: Package) -> None:
    described = json.loads((package.folder / "node_modules/@rota/sdk/package.json").read_text())
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(described)
    installed = {path.name for path in (package.folder / "node_modules").iterdir()}
    assert installed == {"@rota", ".package-lock.json"}


def test_no_file_names_a_registry() -> None:
    for name in ("package-lock.json", *tracked_files("sdks/typescript")):
        text = (REPOSITORY / name).read_text()
        assert not re.search(r'"resolved": "(?!dashboard|sdks)|registry\.', text), name


@pytest.mark.parametrize("version", NODES)
def test_the_package_is_loaded_by_import_and_by_require(package: Package, version: str) -> None:
    ways = {
        "import.mjs": "import { Rota } from '@rota/sdk';",
        "require.cjs": "const { Rota } = require('@rota/sdk');",
    }
    for name, line in ways.items():
        script = package.folder / name
        script.write_text(f"{line}\nnew Rota({{ baseUrl: 'http://x' }});\nconsole.log(Rota.name);")
        assert run(node(version), str(script), cwd=package.folder) == "Rota\n"


def test_the_compiler_accepts_the_code_of_a_user_in_its_strictest_mode(package: Package) -> None:
    package.compile({"sample.ts": (SDK / "tests" / "sample.ts").read_text()})


async def test_the_examples_of_the_readme_compile_and_run(runner: Runner, package: Package) -> None:
    examples = {f"{each.name}.ts": each.code for each in Example.all()}
    assert len(examples) >= 6
    out = await asyncio.to_thread(package.compile, examples)
    for script in sorted(out.glob("*.js")):
        for version in NODES:
            person = await runner.newcomer()
            variables = {"ROTA_BASE_URL": url_of(runner.service), "ROTA_API_KEY": person.token}
            await asyncio.to_thread(
                run, node(version), str(script), cwd=package.folder, env=variables, timeout=120
            )


def test_every_code_of_the_service_has_a_class() -> None:
    import rota.app  # noqa: F401 - imports every module that defines an error

    def codes(kind: type[ApiError]) -> set[str]:
        own = set() if kind.code is None else {kind.code}
        return own.union(*[codes(sub) for sub in kind.__subclasses__()])

    text = (SDK / "src" / "errors.ts").read_text()
    known = set(re.findall(r"^  ([A-Z_]+): \w+Error,$", text, re.MULTILINE))
    assert (codes(ApiError) | set(CODES.values()) | {"RATE_LIMIT_EXCEEDED"}) - known == set()


def test_a_key_whose_first_request_runs_is_recognised() -> None:
    text = (SDK / "src" / "errors.ts").read_text()
    conflict = RequestInProgress()
    [reason] = re.findall(r"this\.reason === '(.*?)'", text)
    assert conflict.details == {"reason": reason}
    [start] = re.findall(r"const start = '(.*?)';", text)
    assert conflict.message.startswith(start)
