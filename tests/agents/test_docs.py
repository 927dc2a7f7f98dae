"""docs/agents.md: its example works, and its tables agree with the code."""

import re
from pathlib import Path

from rota.agents.fields import AgentFields
from rota.agents.files import RESERVED
from rota.agents.sync import sync

DOC = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()


async def test_the_examples_are_a_catalog_that_syncs(sync_url: str, tmp_path: Path) -> None:
    examples = re.findall(r"`(agents/[^`]+\.md)`[^`]*:\n\n```markdown\n(.*?)```", DOC, re.DOTALL)
    for where, example in examples:
        file = tmp_path / where
        file.parent.mkdir(parents=True)
        file.write_text(example)
    report = await sync(sync_url, tmp_path / "agents")
    assert [change.name for change in report.added] == ["invoice-checker", "tea-maker"]


def test_the_table_has_every_field_with_its_description() -> None:
    section = DOC.partition("## Fields")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE))
    assert documented == {str(f.alias): f.description for f in AgentFields.model_fields.values()}


def test_the_text_names_the_optional_fields_and_the_reserved_names() -> None:
    required = [f.alias for f in AgentFields.model_fields.values() if f.is_required()]
    assert required == ["name", "description"]
    assert "Only `name` and `description` are required" in DOC
    assert all(f"`{name}`" in DOC for name in RESERVED)
