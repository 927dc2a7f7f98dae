"""Runs Lighthouse as a phone on the built dashboard, and fails below its limits.

    make lighthouse

It runs `rota dev --demo` with data and ports of its own, signs in as Ada in Chromium, and measures
the sign-in page, the inbox and a review with nothing cached. Lighthouse is installed below .venv.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, expect, sync_playwright

from tools.demo import Api, rota_dev, sign_in

VERSION = "13.5.0"
FOLDER = Path(sys.prefix) / "lighthouse"
LIMITS = {"performance": 90, "accessibility": 100, "best-practices": 100}
PORT = 27_480
# Chromium listens here for Lighthouse.
DEBUGGING_PORT = PORT + 39


def install() -> Path:
    """The program. Its packages are large, so they are not among the dashboard's own."""
    package = FOLDER / "node_modules" / "lighthouse"
    described = package / "package.json"
    if not described.exists() or json.loads(described.read_text())["version"] != VERSION:
        FOLDER.mkdir(parents=True, exist_ok=True)
        wanted = f"lighthouse@{VERSION}"
        options = ["--prefix", str(FOLDER), "--no-save", "--ignore-scripts", "--silent"]
        npm = shutil.which("npm")
        assert npm, "Run this with `make lighthouse`, which puts npm on the path."
        subprocess.run([npm, "install", *options, wanted], check=True)
    return package / "cli" / "index.js"


def measure(program: Path, name: str, address: str) -> bool:
    """Prints the scores of one page, and what costs points. Returns whether they are enough."""
    node = shutil.which("node")
    assert node, "Run this with `make lighthouse`, which puts Node on the path."
    command = [node, str(program), address, f"--port={DEBUGGING_PORT}", "--output=json", "--quiet"]
    command.append(f"--only-categories={','.join(LIMITS)}")
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["finalDisplayedUrl"] == address, report["finalDisplayedUrl"]
    # Lighthouse slows this machine down by four and takes the result for a phone. A machine that is
    # busy has a low number here, and then a low performance says little.
    print(f"{name:8} benchmark index {report['environment']['benchmarkIndex']:.0f}", flush=True)
    enough = True
    for category, limit in LIMITS.items():
        found = report["categories"][category]
        score = round((found["score"] or 0) * 100)
        enough = enough and score >= limit
        print(f"{name:8} {category:15} {score:3} (at least {limit})", flush=True)
        for part in found["auditRefs"]:
            audit = report["audits"][part["id"]]
            if part["weight"] and audit["score"] is not None and audit["score"] < 1:
                print(f"    {audit['score']:.2f} {part['id']} {audit.get('displayValue', '')}")
    return enough


def signed_in(context: BrowserContext, base: str) -> None:
    page = context.new_page()
    sign_in(page, base)
    page.close()


def main() -> None:
    chromium = shutil.which("chromium")
    assert chromium, "Lighthouse needs Chromium. Install it: apt-get install chromium"
    program = install()
    expect.set_options(timeout=20_000)
    with (
        rota_dev(PORT, "--demo") as base,
        tempfile.TemporaryDirectory(prefix="rota-lighthouse-") as profile,
        sync_playwright() as playwright,
    ):
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", f"--remote-debugging-port={DEBUGGING_PORT}"],
        )
        api = Api(base)
        review = api.get("/api/approvals")["approvals"][0]["task"]["id"]
        enough = [measure(program, "sign-in", f"{base}/signin")]
        signed_in(context, base)
        enough.append(measure(program, "inbox", f"{base}/{api.account}"))
        enough.append(measure(program, "review", f"{base}/{api.account}/reviews/{review}"))
        context.close()
    sys.exit(not all(enough))


if __name__ == "__main__":
    main()
