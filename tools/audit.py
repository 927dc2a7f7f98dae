"""Looks up the known vulnerabilities of every package in requirements.lock, with pip-audit.

pip-audit skips a package that the database does not know and still reports success. This script
counts what was really checked: a report without one checked package means that the database was
out of reach, which is printed and is not a failure. A finding always is.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "requirements.lock"

# pip-audit has one exit status for everything; its text tells a lost connection from a bad lock.
UNREACHABLE = re.compile(r"requests\.exceptions\.|ServiceError|network may be blocking")


@dataclass(frozen=True)
class Audit:
    checked: tuple[str, ...]
    skipped: tuple[str, ...]
    findings: tuple[str, ...]


def read_report(report: Mapping[str, Any]) -> Audit:
    """Reads the JSON report of pip-audit."""
    packages = report["dependencies"]
    return Audit(
        checked=tuple(p["name"] for p in packages if "skip_reason" not in p),
        skipped=tuple(p["name"] for p in packages if "skip_reason" in p),
        findings=tuple(
            f"{package['name']} {package['version']}: {finding['id']}"
            f" (fixed in {', '.join(finding['fix_versions']) or 'no version yet'})"
            for package in packages
            for finding in package.get("vulns", ())
        ),
    )


def summarize(audit: Audit | None, *, must_reach: bool) -> tuple[int, str]:
    """The exit status and what to print. None means that pip-audit gave no report."""
    if audit is None or not audit.checked:
        return int(must_reach), (
            "NOT CHECKED: the vulnerability database cannot be reached from here. "
            "Run make audit again on a machine with access to the package index."
        )
    lines = [f"Checked {len(audit.checked)} packages: {len(audit.findings)} findings."]
    lines += audit.findings
    if audit.skipped:
        lines.append(f"NOT CHECKED, unknown to the database: {', '.join(audit.skipped)}")
    return int(bool(audit.findings)), "\n".join(lines)


def run_pip_audit(lock: Path, *service: str) -> Audit | None:
    """Runs pip-audit, with the options of another vulnerability service where given."""
    options = ("--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json")
    done = subprocess.run(
        (sys.executable, "-m", "pip_audit", *options, *service, "--requirement", str(lock)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.strip():
        return read_report(json.loads(done.stdout))
    print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
    if UNREACHABLE.search(done.stderr):
        return None
    raise SystemExit(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--must-reach", action="store_true", help="fail where the database cannot be reached"
    )
    arguments = parser.parse_args()
    status, text = summarize(run_pip_audit(LOCK), must_reach=arguments.must_reach)
    print(text)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
