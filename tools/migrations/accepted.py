"""Findings in migrations that are released, and why each is accepted.

Released migrations do not change, and no finding of a later one belongs here: write it in another
way, or say in the migration why it is safe, with a comment `-- squawk-ignore RULE` or
`-- contract: …`.
"""

from collections.abc import Iterable

from tools.migrations.rules import Finding

# The last migration of the oldest release that can be upgraded. A database with data has all
# migrations up to this one, so they run on empty databases only.
BEFORE_DATA = "0028"

# (file, rule): why.
ACCEPTED = {
    ("0029_data.sql", "ban-drop-constraint"): (
        "The new constraint accepts everything that the old one did. It is added in the same "
        "transaction, NOT VALID."
    ),
    ("0029_data.sql", "data-under-lock"): (
        "It inserts one row for each account. accounts is locked meanwhile, for seconds if there "
        "are millions."
    ),
}


def remaining(findings: Iterable[Finding]) -> list[Finding]:
    return [
        finding
        for finding in findings
        if finding.file[:4] > BEFORE_DATA and (finding.file, finding.rule) not in ACCEPTED
    ]
