"""`make migrations` runs this: squawk and the rules of our own, over every migration."""

import sys

from tools.migrations import accepted, rules, squawk
from tools.migrations.files import VERSIONS


def main() -> int:
    program = squawk.program()
    if program is None:
        print("squawk is not installed. Run: make migrations", file=sys.stderr)
        return 2
    found = [*rules.check(), *squawk.check(program)]
    remaining = accepted.remaining(found)
    for finding in remaining:
        print(finding, file=sys.stderr)
    count = len(list(VERSIONS.glob("*.sql")))
    print(f"{count} files checked, {len(found) - len(remaining)} accepted findings in old ones.")
    print(f"{len(remaining)} problems." if remaining else "No problems.")
    return 1 if remaining else 0


if __name__ == "__main__":
    raise SystemExit(main())
