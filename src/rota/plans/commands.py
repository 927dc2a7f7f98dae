"""`rota admin payments`: sets up the payment processor and compares its records with ours."""

import contextlib
import json
from collections.abc import Sequence
from datetime import datetime

import typer
from rich.console import Console
from rich.table import Table

from rota.credits.money import usd
from rota.payments.port import PaymentFailed, Processor, Product
from rota.plans.reconcile import Difference, Reconciliation
from rota.platform import ids

# One line for each row, so that the output can be searched with grep.
WIDTH = 220

EVENTS = (
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "charge.refunded",
    "charge.refund.updated",
    "refund.updated",
    "refund.failed",
    "charge.dispute.created",
    "charge.dispute.updated",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.funds_reinstated",
    "charge.dispute.closed",
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.deleted",
    "invoice.paid",
    "invoice.payment_failed",
)


async def setup_command(
    processor: Processor, products: tuple[Product, ...], public_url: str
) -> None:
    """Creates the products at the processor and prints the remaining steps."""
    await processor.offer(products)
    for product in products:
        typer.echo(f"{product.title}: ${usd(product.price_cents)} a month")
    typer.echo(
        f"\nIn Stripe's dashboard, add a webhook endpoint with the URL\n"
        f"  {public_url}/webhooks/stripe"
    )
    typer.echo("and these events:")
    for event in EVENTS:
        typer.echo(f"  {event}")
    typer.echo("Then set ROTA_STRIPE_WEBHOOK_SECRETS to the endpoint's signing secret.")


async def reconcile_command(
    reconciliation: Reconciliation, since: datetime, *, apply: bool, as_json: bool = False
) -> None:
    """Prints the differences. Exits with 1 if any remain."""
    found = [difference async for difference in reconciliation.differences(since)]
    if not found and not as_json:
        typer.echo("No differences.")
        return
    remaining = found
    if apply:
        for difference in found:
            if difference.repair is not None:
                with contextlib.suppress(PaymentFailed):
                    # It remains, and is shown as one to check.
                    await difference.repair()
        remaining_ids = {d.id async for d in reconciliation.differences(since)}
        remaining = [difference for difference in found if difference.id in remaining_ids]
    if as_json:
        left = {difference.id for difference in remaining}
        differences = [_wire(each, is_repaired=each.id not in left) for each in found]
        typer.echo(json.dumps({"differences": differences}, indent=2, ensure_ascii=False))
        if remaining:
            raise typer.Exit(1)
        return
    Console(width=WIDTH).print(_table(found, {d.id for d in remaining}, applied=apply))
    if remaining:
        typer.secho(_advice(remaining, applied=apply), err=True)
        raise typer.Exit(1)
    typer.echo("All differences are repaired.")


def _wire(difference: Difference, *, is_repaired: bool) -> dict[str, object]:
    return {
        "account": ids.to_wire("acct", difference.account_id),
        "id": difference.id,
        "kind": difference.kind,
        "stripe": difference.theirs,
        "rota": difference.ours,
        "repairable": difference.repair is not None,
        "repaired": is_repaired,
    }


def _table(found: Sequence[Difference], remaining_ids: set[str], *, applied: bool) -> Table:
    table = Table()
    for title in ("Account", "Stripe ID", "Kind", "Stripe", "Rota", "Action"):
        table.add_column(title, no_wrap=True)
    for each in found:
        action = "run with --apply" if each.repair else "check manually"
        if applied and each.id not in remaining_ids:
            action = "repaired"
        account = ids.to_wire("acct", each.account_id)
        table.add_row(account, each.id, each.kind, each.theirs, each.ours, action)
    return table


def _advice(remaining: Sequence[Difference], *, applied: bool) -> str:
    count = f"{len(remaining)} difference{'' if len(remaining) == 1 else 's'}"
    if not applied and any(difference.repair for difference in remaining):
        return f"{count}. Run the command again with --apply to repair what Rota missed."
    return f"{count} to check manually."
