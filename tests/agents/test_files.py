"""All problems of a catalog are reported together, with their lines and what to do."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from rota.agents.fields import AgentFields
from rota.agents.files import CatalogInvalid, Problem, catalog_folder
from rota.agents.model import Approval
from tests.agents.catalogs import read_catalog
from tests.agents.conftest import Folder, agent_text

GOOD = """\
---
name: ledger-clerk
displayName: Ledger Clerk
description: Keeps the ledger.
department: Finance
tier: 3
tags: [ledger, books]
aliases: [bookkeeper]
premium: false
requiredTier: BASIC
model: default
tools: ["books/get_*"]
approval:
  run: true
  tools: always
  output: true
budgetCents: 10
maxSteps: 5
---
Keep it well.
"""


def problems_of(folder: Path) -> list[Problem]:
    with pytest.raises(CatalogInvalid) as caught:
        read_catalog(folder)
    return caught.value.problems


def test_the_shipped_catalog_is_valid() -> None:
    agents = read_catalog(catalog_folder())
    assert len(agents) >= 30
    assert {agent.rank for agent in agents} == {1, 2, 3}


def test_a_file_defines_an_agent(folder: Folder) -> None:
    [agent] = read_catalog(folder(ledger=GOOD))
    assert agent.name == "ledger-clerk"
    assert agent.display_name == "Ledger Clerk"
    assert agent.tags == ("ledger", "books")
    assert agent.aliases == ("bookkeeper",)
    assert agent.approval == Approval(run=True, tools="always", output=True)
    assert (agent.budget_cents, agent.max_steps) == (10, 5)
    assert agent.instructions == "Keep it well."


def test_a_file_can_say_what_the_agent_is_for(folder: Folder) -> None:
    text = GOOD.replace("tier: 3\n", "tier: 3\nuseFor:\n  - keep the ledger\n  - book, and pay\n")
    [agent] = read_catalog(folder(ledger=text))
    assert agent.use_for == ("keep the ledger", "book, and pay")


def test_a_file_can_describe_tool_calls_and_give_initials(folder: Folder) -> None:
    sentences = 'describe:\n  books/get_entry: "Read {entry.id} of {entries.length}"\n'
    text = GOOD.replace("tier: 3\n", "tier: 3\ninitials: LK\n" + sentences)
    [agent] = read_catalog(folder(ledger=text))
    assert agent.describe == {"books/get_entry": "Read {entry.id} of {entries.length}"}
    assert agent.shown_initials == "LK"


@pytest.mark.parametrize(
    ("display", "initials"),
    [
        ("Ledger Clerk", "LC"),
        ("Month-End Close Lead", "ME"),
        ("  ledger  ", "LE"),
        ("R", "RR"),
        ("Ökonom für alles", "ÖF"),
        ("***", "LE"),
    ],
)
def test_initials_are_made_from_the_display_name(
    folder: Folder, display: str, initials: str
) -> None:
    text = GOOD.replace("displayName: Ledger Clerk", f'displayName: "{display}"')
    [agent] = read_catalog(folder(ledger=text))
    assert agent.shown_initials == initials


READING = re.compile(r"(get|list|search|read|query|report|fetch)|.*_read$")


def test_every_tool_of_the_shipped_agents_that_writes_has_a_sentence() -> None:
    for agent in read_catalog(catalog_folder()):
        for pattern in agent.tools:
            if not READING.match(pattern.partition("/")[2]):
                assert any(fnmatchcase(tool, pattern) for tool in agent.describe), pattern


def test_the_initials_of_the_shipped_agents_differ() -> None:
    initials = [agent.shown_initials for agent in read_catalog(catalog_folder())]
    assert len(set(initials)) == len(initials)


def test_approval_and_aliases_have_defaults(folder: Folder) -> None:
    text = GOOD.replace("aliases: [bookkeeper]\n", "")
    start, end = text.index("approval:"), text.index("budgetCents")
    [agent] = read_catalog(folder(ledger=text[:start] + text[end:]))
    assert agent.aliases == ()
    assert agent.approval == Approval(run=False, tools="writes", output=False)


def test_words_that_yaml_reads_as_booleans_numbers_and_dates_are_text(folder: Folder) -> None:
    [agent] = read_catalog(
        folder(ledger=GOOD.replace("[ledger, books]", "[no, on, 1.5, 2024-01-01]"))
    )
    assert agent.tags == ("no", "on", "1.5", "2024-01-01")


@pytest.mark.parametrize("encoded", [GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD])
def test_windows_line_ends_and_a_byte_order_mark_are_accepted(tmp_path: Path, encoded: str) -> None:
    (tmp_path / "ledger.md").write_bytes(encoded.encode())
    [agent] = read_catalog(tmp_path)
    assert agent.instructions == "Keep it well."


def test_files_below_hidden_folders_are_ignored(folder: Folder) -> None:
    root = folder(ledger=GOOD)
    (root / ".git").mkdir()
    (root / ".git" / "notes.md").write_text("not an agent")
    (root / "deeper" / "still").mkdir(parents=True)
    (root / "deeper" / "still" / "other.md").write_text(agent_text("other"))
    assert [agent.name for agent in read_catalog(root)] == ["other", "ledger-clerk"]


def test_a_name_a_description_and_instructions_are_enough(folder: Folder) -> None:
    [agent] = read_catalog(
        folder(short="---\nname: tea-maker\ndescription: Makes tea.\n---\nMake good tea.\n")
    )
    assert (agent.name, agent.display_name) == ("tea-maker", "Tea Maker")
    assert (agent.department, agent.rank, agent.required_tier) == ("General", 3, "BASIC")
    # It can use no tool, and what it spends is limited.
    assert (agent.tools, agent.approval, agent.model) == ((), Approval(), "default")
    assert (agent.budget_cents, agent.max_steps) == (50, 20)


# A text of the good file, its replacement, the line of the problem, and part of the message.
WRONG = [
    ("name: ledger-clerk", "name: Ledger Clerk", 2, "it must be at most 64 characters from a-z"),
    ("name: ledger-clerk", "name: 7up", 2, "`name` is 7up"),
    ("name: ledger-clerk", "name: " + "x" * 65, 2, "`name` is xxx"),
    ("name: ledger-clerk", "name: catalog", 2, "`catalog` is a reserved name; choose another"),
    ("[bookkeeper]", "[resolve]", 8, "`resolve` is a reserved name"),
    ("name: ledger-clerk", "name: tasks", 2, "`tasks` is a reserved name; choose another"),
    ("[bookkeeper]", "[ledger-clerk]", 8, "`ledger-clerk` is already used by"),
    ("[bookkeeper]", "[b, b]", 8, "`b` is already used by"),
    ("[bookkeeper]", "bookkeeper", 8, "`aliases` is bookkeeper; it must be a list"),
    ("displayName: Ledger Clerk", "displayName: ", 3, "`displayName` is empty; it must be text"),
    ("displayName: Ledger Clerk", "displayName: '  '", 3, "`displayName` is"),
    ("displayName: Ledger Clerk", "displayName: 2024", 3, "put it in quotes to make it text"),
    ("description: Keeps the ledger.\n", "", 1, "`description` is missing; it must be text"),
    ("Keeps the ledger.", "x" * 1001, 4, "`description` is xxx"),
    ("tier: 3", "tier: 4", 6, "`tier` is 4; it must be 1 (director), 2 (lead) or 3 (specialist)"),
    ("tier: 3", 'tier: "3"', 6, '`tier` is "3"; it must be 1'),
    ("tier: 3", "tier: [1]", 6, "`tier` is a list; it must be 1"),
    ("tier: 3", "tier: 3\ntier: 2", 7, "`tier` appears twice; remove one of them"),
    ("[ledger, books]", "[ledger, 5]", 7, "`tags.1` is 5; it must be part of a list of at most 20"),
    ("[ledger, books]", "\n  - ledger\n  - {a: b}", 9, "`tags.1` is a group of fields"),
    ("[ledger, books]", "[[[[[x]]]]]", 7, "nested too deeply"),
    ("[ledger, books]", "&a [*a]", 7, "nested too deeply"),
    ("tier: 3", "tier: 3\nuseFor: pay bills", 7, "`useFor` is pay bills; it must be a list of at"),
    ("tier: 3", "tier: 3\nuseFor: [pay, '']", 7, '`useFor.1` is ""; it must be part of a list'),
    ("tier: 3", f"tier: 3\nuseFor: [{'x' * 101}]", 7, "`useFor.0` is xxx"),
    ("tier: 3", f"tier: 3\nuseFor: [{'x, ' * 41}]", 7, "`useFor` is a list; it must be a list of"),
    ("premium: false", "premium: no", 9, "`premium` is no; it must be true or false"),
    ("premium: false", "premium: false\ncolour: x", 10, "`colour` is not a field of an agent"),
    ("maxSteps: 5", "x: 5", 18, "`x` is not a field of an agent; remove it"),
    ("maxSteps: 5", "maxStep: 5", 18, "not a field of an agent; did you mean `maxSteps`?"),
    ("requiredTier: BASIC", "requiredTier: GOLD", 10, "is GOLD; it must be BASIC, STANDARD"),
    ("model: default", "model: my model", 11, "`model` is my model; it must be a model's name"),
    ('["books/get_*"]', "[delete]", 12, "`tools.0` is delete; it must be part of a list"),
    ("tier: 3", "tier: 3\ninitials: Lc", 7, "`initials` is Lc; it must be two capital letters"),
    ("tier: 3", "tier: 3\ninitials: LCX", 7, "`initials` is LCX; it must be two capital letters"),
    ("model: default", "model: default\ndescribe: Get it", 12, "`describe` is Get it; it must be"),
    *(
        ("model: default", f"model: default\ndescribe:\n  books/get_it: {text}", 13, message)
        for text, message in (
            ("'Get {entry'", "with braces only around placeholders like {ticketId}"),
            ("'Get entry}'", "with braces only around placeholders"),
            ("'Get {}'", "with braces only around placeholders"),
            ("'Get {{entry}}'", "with braces only around placeholders"),
            ("'Get {entry!r}'", "with braces only around placeholders"),
            ("'Get {entry:>30}'", "with braces only around placeholders"),
            ("'Get {entry[0]}'", "with braces only around placeholders"),
            ("'Get {entry.}'", "with braces only around placeholders"),
            ("''", '`describe.books/get_it` is ""; it must be a sentence of at most 150'),
            ("x" * 151, "it must be a sentence of at most 150 characters"),
            ("5", "put it in quotes to make it text"),
        )
    ),
    ("model: default", "model: default\ndescribe:\n  books: Get", 13, "for a tool server/tool"),
    ("model: default", "model: default\ndescribe:\n  books/get_*: Get", 13, "for a tool server/"),
    ("model: default", "model: default\ndescribe:\n  books/pay: Pay", 13,
     "`describe` has a sentence for books/pay, which `tools` does not include; correct the name"),
    ("  tools: always", "  tools: sometimes", 15, "is sometimes; it must be never, writes"),
    ("  tools: always", "  tools: [books]", 15, "`approval.tools"),
    ("  run: true", "  run: 1", 14, "`approval.run` is 1; it must be true or false"),
    ("  output: true", "  outputs: true", 16, "`approval.outputs` is not a field"),
    ("approval:\n", "approval: never\nx:\n", 13, "is never; it must be a group"),
    ("budgetCents: 10", "budgetCents: 0", 17, "`budgetCents` is 0; it must be a whole"),
    ("budgetCents: 10", "budgetCents: 9.5", 17, "`budgetCents` is 9.5; it must be a whole number"),
    ("maxSteps: 5", "maxSteps: true", 18, "`maxSteps` is true; it must be a whole number"),
    ("maxSteps: 5", "? [a]\n: b", 18, "a field's name must be a word"),
    ("maxSteps: 5", "maxSteps: [", 18, "the front matter is not valid YAML"),
    ("maxSteps: 5", "maxSteps: \x07", 1, "the front matter is not valid YAML"),
    ("Keep it well.", "  ", 19, "the instructions are missing; write them below the front matter"),
    ("Keep it well.", "x" * 100_001, 20, "the instructions have 100001 characters; shorten them"),
    ("Keep it well.", "Keep\nit\0well", 21, "the line contains a NUL character; remove it"),
    ("---\nname", "name", 1, "the front matter is missing; start the file with a line"),
    ("---\nKeep", "Keep", 1, "the front matter does not end; close it"),
    (GOOD, "---\njust words\n---\nText", 1, "the front matter has no fields"),
    (GOOD, "---\n---\nText", 1, "the front matter has no fields"),
    (GOOD, "", 1, "the front matter is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG)
def test_a_problem_has_its_line_and_a_fix(
    folder: Folder, old: str, new: str, line: int, message: str
) -> None:
    assert old in GOOD
    root = folder(ledger=GOOD.replace(old, new, 1))
    problems = problems_of(root)
    found = [str(problem) for problem in problems]
    assert any(
        text.startswith(f"{root / 'ledger.md'}:{line}: ") and message in text for text in found
    ), found


def test_all_problems_of_all_files_are_reported_together(folder: Folder) -> None:
    root = folder(
        first=GOOD.replace("tier: 3", "tier: 9").replace("maxSteps: 5", "maxSteps: 0"),
        second="no front matter",
        third=agent_text("third", aliases="fourth"),
        fourth=agent_text("fourth"),
    )
    found = [(problem.file.name, problem.line) for problem in problems_of(root)]
    assert found == [("first.md", 6), ("first.md", 18), ("second.md", 1), ("third.md", 8)]


def test_a_name_used_twice_is_reported_with_the_other_file(folder: Folder) -> None:
    root = folder(one=agent_text("same"), two=agent_text("same"))
    [problem] = problems_of(root)
    assert problem.file == root / "two.md"
    assert problem.message == f"`same` is already used by {root / 'one.md'}:2; choose another"


def test_a_file_that_is_not_utf8_is_reported(folder: Folder) -> None:
    root = folder(good=GOOD)
    (root / "bad.md").write_bytes(b"---\nname: caf\xe9\n---\n")
    [problem] = problems_of(root)
    assert (problem.file.name, problem.line) == ("bad.md", 1)
    assert "save it as UTF-8" in problem.message


def test_a_file_that_cannot_be_read_is_reported(folder: Folder) -> None:
    root = folder(good=GOOD)
    (root / "folder.md").mkdir()
    [problem] = problems_of(root)
    assert "cannot be read: Is a directory" in problem.message


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_a_folder_without_files_is_an_error_instead_of_an_empty_catalog(
    tmp_path: Path, name: str
) -> None:
    [problem] = problems_of(tmp_path / name)
    assert "there are no *.md files in this folder" in problem.message


def test_every_field_has_a_description() -> None:
    assert all(field.description for field in AgentFields.model_fields.values())


@pytest.mark.parametrize(
    ("tools", "read", "write"),
    [
        ("never", False, False),
        ("writes", False, True),
        ("always", True, True),
        (("crm/delete_*",), False, False),
        (("crm/*",), True, True),
    ],
)
def test_the_approval_policy_decides_which_calls_need_approval(
    tools: tuple[str, ...], read: bool, write: bool
) -> None:
    policy = Approval(tools=tools)
    assert policy.asks_before("crm/get_contact", read_only=True) is read
    assert policy.asks_before("crm/update_contact", read_only=False) is write


def test_an_agent_can_use_the_tools_that_match_its_patterns(folder: Folder) -> None:
    [agent] = read_catalog(folder(ledger=GOOD))
    assert agent.may_use("books/get_entry")
    assert not agent.may_use("books/delete_entry")
    assert not agent.may_use("Books/get_entry")
