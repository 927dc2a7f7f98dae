"""`rota usage`: what is left, and what was spent."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from rota.cli.output import print_fields, print_json, print_table, print_text
from rota.cli.session import Session
from rota.cli.text import dollars, moment


class GroupBy(StrEnum):
    DAY = "day"
    AGENT = "agent"
    MODEL = "model"


def usage(
    session: Session,
    by: Annotated[GroupBy, typer.Option(help="What each row is about.")] = GroupBy.DAY,
    start: Annotated[
        datetime | None,
        typer.Option("--from", formats=["%Y-%m-%d"], help="The first day (UTC)."),
    ] = None,
    end: Annotated[
        datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="The last day (UTC).")
    ] = None,
) -> None:
    """Show the balance and spending, by day, agent or model.

    Example: rota usage --by agent --from 2026-11-01
    """
    balance = session.client.credits.balance()
    spent = session.client.credits.usage(
        from_=start.date() if start else None, to=end.date() if end else None, group_by=by.value
    )
    if session.as_json:
        print_json({"balance": balance, "usage": spent})
        return
    bar = balance.usage_bar
    renews = f", renews {moment(bar.resets_at)}" if bar.resets_at else ""
    allowance = f"{bar.percent}% used{renews}"
    print_fields(
        [
            ("Available", dollars(balance.total_available)),
            ("Held", dollars(balance.balance.reserved_cents)),
            ("Top-up", dollars(balance.top_up_cents)),
            ("Allowance", allowance if balance.has_allowance else None),
            ("Owed", dollars(balance.owed_cents) if balance.owed_cents else None),
        ]
    )
    print_text("")
    rows: list[tuple[object, ...]] = [
        (
            each.group or each.key,
            each.calls,
            each.input_tokens,
            each.output_tokens,
            f"${each.cost_usd}",
        )
        for each in spent.usage
    ]
    total = spent.totals
    if rows:
        tokens = total.input_tokens, total.output_tokens
        rows.append(("total", total.calls, *tokens, f"${total.cost_usd}"))
    columns = (by.value.title(), "Calls", "Tokens in", "Tokens out", "Cost")
    print_table(columns, rows, f"Nothing was spent from {spent.from_} to {spent.to}.")
