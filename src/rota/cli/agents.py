"""`rota agents …`: find agents and see what they can do."""

from typing import TYPE_CHECKING, Annotated

import typer

from rota.cli.output import (
    page_size,
    print_fields,
    print_json,
    print_list,
    print_table,
    print_text,
)
from rota.cli.session import Session, client_command
from rota.cli.text import dollars

if TYPE_CHECKING:
    from rota_sdk.models import Agent

commands = typer.Typer(no_args_is_help=True, help="Find agents and see what they can do.")

COLUMNS = ("Name", "Department", "What it does", "Budget", "")


def _row(agent: "Agent") -> tuple[str, ...]:
    locked = f"needs {agent.required_tier}" if agent.locked else ""
    return agent.name, agent.department, agent.description, dollars(agent.budget_cents), locked


@client_command(commands, "list")
def list_agents(
    session: Session,
    department: Annotated[str | None, typer.Option(help="Only this department.")] = None,
    rank: Annotated[
        int | None, typer.Option(min=1, max=3, help="Only this rank and the higher ones.")
    ] = None,
    search: Annotated[str | None, typer.Option(help="Only agents with these words.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 100,
) -> None:
    """List the agents of the catalog."""
    pages = session.client.agents.list(
        department=department, tier=rank, search=search, page_size=page_size(limit)
    )
    empty = "No agents match."
    print_list("agents", pages, limit, COLUMNS, _row, empty, as_json=session.as_json)


@client_command(commands)
def find(
    session: Session,
    work: Annotated[str, typer.Argument(help="The work, in your own words.")],
) -> None:
    """Find the best agents for some work.

    Example: rota agents find "answer a complaint"
    """
    found = session.client.agents.resolve(q=work)
    if session.as_json:
        print_json(found)
        return
    rows = [_row(each.agent) for each in found.candidates or []] or [_row(found.agent)]
    print_table(COLUMNS, rows, "")


@client_command(commands)
def show(
    session: Session, name: Annotated[str, typer.Argument(help="The name of the agent.")]
) -> None:
    """Show an agent: its tools, its limits and its instructions."""
    agent = session.client.agents.get(name)
    if session.as_json:
        print_json({"agent": agent})
        return
    approval = agent.approval
    tools = approval.tools if isinstance(approval.tools, str) else ", ".join(approval.tools)
    print_fields(
        [
            ("Name", agent.name),
            ("Shown as", agent.display_name),
            ("Department", agent.department),
            ("Rank", agent.tier),
            ("What it does", agent.description),
            ("Version", agent.version),
            ("Model", agent.model),
            ("Tools", ", ".join(agent.tools) or "none"),
            ("Asks before a run", "yes" if approval.run else "no"),
            ("Asks before tools", tools),
            ("Asks before output", "yes" if approval.output else "no"),
            ("Budget", dollars(agent.budget_cents)),
            ("Steps", agent.max_steps),
            ("Locked", f"needs {agent.required_tier}" if agent.locked else None),
        ]
    )
    if agent.instructions:
        print_text(f"\n{agent.instructions}")
