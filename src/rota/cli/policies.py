"""`rota policies …` and `rota rules …`: who approves, and which calls need no review."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rota.cli.exits import ExitCode, fail
from rota.cli.output import page_size, print_fields, print_json, print_list, print_text
from rota.cli.session import Session, client_command, read_json
from rota.cli.text import dollars, moment
from rota.cli.tools import find_server

if TYPE_CHECKING:
    from rota_sdk.models import PoliciesResponse, Rule

policies = typer.Typer(no_args_is_help=True, help="Set who can approve, and what needs approval.")
rules = typer.Typer(no_args_is_help=True, help="Let agents make some calls without a review.")


class Approvers(StrEnum):
    ANYONE = "anyone"
    NAMED = "named"


@client_command(policies)
def show(session: Session) -> None:
    """Show the policies of the account. Needs a session."""
    _print(session, session.client.policies.get())


@client_command(policies, "set")
def set_policies(
    session: Session,
    approvers: Annotated[
        Approvers | None,
        typer.Option(
            help="Who can approve: anyone (every member), or named (owners, admins, and members "
            "with the right to approve)."
        ),
    ] = None,
    second_person: Annotated[
        bool | None,
        typer.Option(
            "--second-person/--no-second-person",
            help="Whether a second person must approve what a user shaped.",
        ),
    ] = None,
    max_cost_cents: Annotated[
        int | None, typer.Option(min=0, help="A run with a higher budget waits for approval.")
    ] = None,
    no_max_cost: Annotated[bool, typer.Option("--no-max-cost", help="Remove that limit.")] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=DAYS",
            help="Delete tasks, steps, events or audit after this many days, or `default`.",
        ),
    ] = None,
) -> None:
    """Change policies. What is not given stays as it is. Needs a session.

    Example: rota policies set --keep tasks=365 --keep steps=90 --keep audit=default
    """
    if no_max_cost and max_cost_cents is not None:
        fail("Use either --max-cost-cents or --no-max-cost.", ExitCode.USAGE)
    before = session.client.policies.get()
    now = before.approvals
    limit = now.max_cost_cents if max_cost_cents is None else max_cost_cents
    approvals = {
        "second_person": now.second_person if second_person is None else second_person,
        "approvers": approvers.value if approvers else now.approvers,
        "max_cost_cents": None if no_max_cost else limit,
    }
    retention = before.retention.model_dump(by_alias=True) | dict(map(_days, keep or ()))
    _print(session, session.client.policies.replace(approvals=approvals, retention=retention))


def _days(text: str) -> tuple[str, int | None]:
    kind, _, days = text.partition("=")
    if kind not in ("tasks", "steps", "events", "audit") or not (
        days == "default" or days.isdecimal()
    ):
        fail(f"{text} is not a KIND=DAYS such as tasks=365 or audit=default.", ExitCode.USAGE)
    return kind, None if days == "default" else int(days)


def _print(session: Session, found: "PoliciesResponse") -> None:
    if session.as_json:
        print_json(found)
        return
    approvals = found.approvals
    limit = approvals.max_cost_cents
    print_fields(
        [
            ("Approvers", approvals.approvers),
            ("Second person", "yes" if approvals.second_person else "no"),
            ("Approval above", "no limit" if limit is None else dollars(limit)),
            *(
                (f"Keep {kind}", "indefinitely" if days is None else f"{days} days")
                for kind, days in found.retention_in_effect.model_dump().items()
            ),
        ]
    )


@client_command(rules, "list")
def list_rules(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 100,
) -> None:
    """List the standing rules, including those that no longer work. Needs a session."""
    pages = session.client.rules.list(page_size=page_size(limit))
    columns = ("ID", "Agent", "Tool", "Used", "Ends", "State", "Made by")
    empty = "There are no rules."
    print_list("rules", pages, limit, columns, _row, empty, as_json=session.as_json)


def _row(rule: "Rule") -> tuple[object, ...]:
    return (
        rule.id,
        rule.agent,
        rule.tool,
        f"{rule.uses} of {rule.max_uses}",
        moment(rule.expires_at),
        rule.void_reason or rule.state,
        rule.created_by_name,
    )


@client_command(rules)
def create(
    session: Session,
    server: Annotated[str, typer.Argument(help="The name or the ID (mcp_…) of the server.")],
    tool: Annotated[str, typer.Argument(help="The name of the tool.")],
    agent: Annotated[str, typer.Option(help="The agent that calls it.")],
    arguments: Annotated[
        str,
        typer.Option(
            help='A condition for each argument, as JSON, @FILE or -: {"id": {"any": true}}.'
        ),
    ],
    max_uses: Annotated[int, typer.Option(min=1, help="How many calls it approves.")],
    days: Annotated[int, typer.Option(min=1, help="How long it works.")] = 30,
) -> None:
    """Create a standing rule. Needs a session.

    Example: rota rules create docs create_draft --agent writer --max-uses 20 --arguments
    '{"title": {"any": true}}'
    """
    from datetime import UTC, datetime, timedelta

    conditions: Any = read_json(arguments, "--arguments")
    if not isinstance(conditions, dict):
        fail("--arguments must be a JSON object.", ExitCode.USAGE)
    made = session.client.rules.create(
        server_id=find_server(session, server).id,
        tool=tool,
        agent=agent,
        arguments=conditions,
        max_uses=max_uses,
        expires_at=datetime.now(UTC) + timedelta(days=days),
    )
    if session.as_json:
        print_json({"rule": made})
    else:
        print_text(made.id)


@client_command(rules)
def delete(
    session: Session,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The ID of the rule.")],
) -> None:
    """Revoke a standing rule. It no longer approves calls. Needs a session."""
    session.client.rules.delete(rule)
    if session.as_json:
        print_json({"deleted": True, "id": rule})
    else:
        print_text(f"{rule} is revoked.")
