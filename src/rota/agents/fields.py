"""The fields in the front matter of an agent's file.

A field's description completes the sentence "it must be …" in error messages.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from rota.agents.model import Approval, Definition, Level
from rota.agents.templates import MAX_TEMPLATE, is_template
from rota.platform import json

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=64)]
Tool = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.*-]+/[A-Za-z0-9_./*-]+$", max_length=200)]


def _text(at_most: int) -> StringConstraints:
    return StringConstraints(strip_whitespace=True, min_length=1, max_length=at_most)


def _template(text: str) -> str:
    if not is_template(text):
        raise ValueError
    return text


ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+$", max_length=200)]
Template = Annotated[str, _text(MAX_TEMPLATE), AfterValidator(_template)]
# What a single template must be.
TEMPLATE = (
    f"a sentence of at most {MAX_TEMPLATE} characters for a tool server/tool, with braces only "
    "around placeholders like {ticketId}, {customer.name} and {invoices.length}"
)


# The size of the JSON Schema of an output, as JSON in UTF-8.
MAX_SCHEMA_BYTES = 32 * 1024
OUTPUT_SCHEMA = (
    f"a JSON Schema of at most {MAX_SCHEMA_BYTES // 1024} KiB whose type is object, because the "
    "output is an object"
)


def check_output_schema(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """Raises if this cannot be the schema of an output, as far as that is visible at once."""
    if schema is not None and (
        schema.get("type") != "object" or len(json.dumps(schema)) > MAX_SCHEMA_BYTES
    ):
        raise ValueError
    return schema


class _FrontMatter(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, strict=True, extra="forbid")


_YES_NO = "true or false"
_TOOLS = "patterns of the form server/tool, where * is any characters"


class ApprovalFields(_FrontMatter):
    run: Annotated[bool, Field(description=_YES_NO)] = False
    tools: Annotated[
        Literal["never", "writes", "always"] | list[Tool],
        Field(description=f"never, writes, always, or a list of {_TOOLS}"),
    ] = "writes"
    output: Annotated[bool, Field(description=_YES_NO)] = False

    def policy(self) -> Approval:
        tools = self.tools if isinstance(self.tools, str) else tuple(self.tools)
        return Approval(self.run, tools, self.output)


class AgentFields(_FrontMatter):
    name: Annotated[
        Name,
        Field(description="at most 64 characters from a-z, 0-9 and -, starting with a letter"),
    ]
    # Without it, it is made from the name.
    display_name: Annotated[str, _text(100), Field(description="text of 1 to 100 characters")] = ""
    initials: Annotated[
        str | None, Field(pattern=r"^\p{Lu}\p{Lu}$", description="two capital letters")
    ] = None
    description: Annotated[str, _text(1000), Field(description="text of 1 to 1000 characters")]
    use_for: Annotated[
        list[Annotated[str, _text(100)]],
        Field(max_length=40, description="a list of at most 40 strings of 1 to 100 characters"),
    ] = []
    department: Annotated[str, _text(100), Field(description="text of 1 to 100 characters")] = (
        "General"
    )
    tier: Annotated[
        int, Field(ge=1, le=3, description="1 (director), 2 (lead) or 3 (specialist)")
    ] = 3
    tags: Annotated[
        list[Annotated[str, _text(50)]],
        Field(max_length=20, description="a list of at most 20 strings of 1 to 50 characters"),
    ] = []
    aliases: Annotated[
        list[Name], Field(max_length=20, description="a list of at most 20 names like `name`")
    ] = []
    premium: Annotated[bool, Field(description=_YES_NO)] = False
    required_tier: Annotated[
        Level, Field(description="BASIC, STANDARD, ADVANCED, CORPORATE or ENTERPRISE")
    ] = "BASIC"
    model: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$",
            max_length=100,
            description="a model's name, such as default, fast or strong",
        ),
    ] = "default"
    tools: Annotated[
        list[Tool], Field(max_length=100, description=f"a list of at most 100 {_TOOLS}")
    ] = []
    describe: Annotated[
        dict[ToolName, Template],
        Field(max_length=100, description="a group of at most 100 lines server/tool: sentence"),
    ] = {}
    approval: Annotated[
        ApprovalFields, Field(description="a group of the fields run, tools and output")
    ] = ApprovalFields()
    budget_cents: Annotated[
        int, Field(ge=1, le=100_000, description="a whole number from 1 to 100000")
    ] = 50
    max_steps: Annotated[int, Field(ge=1, le=1000, description="a whole number from 1 to 1000")] = (
        20
    )
    max_concurrent: Annotated[
        int | None, Field(ge=1, le=1000, description="a whole number from 1 to 1000")
    ] = None
    output_schema: Annotated[
        dict[str, Any] | None,
        AfterValidator(check_output_schema),
        Field(description=OUTPUT_SCHEMA),
    ] = None

    def definition(self, instructions: str) -> Definition:
        return Definition(
            name=self.name,
            display_name=self.display_name or self.name.replace("-", " ").title(),
            description=self.description,
            department=self.department,
            rank=self.tier,
            tags=tuple(self.tags),
            premium=self.premium,
            required_tier=self.required_tier,
            model=self.model,
            initials=self.initials,
            use_for=tuple(self.use_for),
            aliases=tuple(self.aliases),
            tools=tuple(self.tools),
            describe=self.describe,
            approval=self.approval.policy(),
            budget_cents=self.budget_cents,
            max_steps=self.max_steps,
            instructions=instructions,
            output_schema=self.output_schema,
            max_concurrent=self.max_concurrent,
        )
