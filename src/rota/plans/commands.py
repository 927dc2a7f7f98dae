"""`rota payments`: what an operator does about the payment processor."""

from collections.abc import Sequence
from datetime import datetime

import typer
from rich.console import Console
from rich.table import Table

from rota.credits.money import usd
from rota.payments.port import Processor, Product
from rota.plans.reconcile import Difference, Reconciliation
from rota.platform import ids

# A row is one line, also where the output is no terminal: it is to be searched.
WIDTH = 220

EVENTS = (
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "charge.refunded",
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.deleted",
    "invoice.paid",
    "invoice.payment_failed",
)


async def setup_command(
    processor: Processor, products: tuple[Product, ...], public_url: str
) -> None:
    """Has the processor sell what this service sells, and says what is left to do there."""
    await processor.offer(products)
    for product in products:
        typer.echo(f"{product.title}: ${usd(product.price_cents)} a month")
    typer.echo(
        f"\nIn Stripe's dashboard, let a webhook endpoint send to\n  {public_url}/webhooks/stripe"
    )
    typer.echo("these events:")
    for event in EVENTS:
        typer.echo(f"  {event}")
    typer.echo("and set its signing secret as ROTA_STRIPE_WEBHOOK_SECRETS.")


async def reconcile_command(books: Reconciliation, since: datetime, *, apply: bool) -> None:
    """Shows where the books differ; exits with 1 if they do and nothing mended it."""
    found = [difference async for difference in books.differences(since)]
    if not found:
        typer.echo("The books agree.")
        return
    left = found
    if apply:
        for difference in found:
            if difference.mend is not None:
                await difference.mend()
        still = {d.id async for d in books.differences(since)}
        left = [difference for difference in found if difference.id in still]
    Console(width=WIDTH).print(_table(found, {d.id for d in left}, applied=apply))
    if left:
        typer.secho(_advice(left, applied=apply), err=True)
        raise typer.Exit(1)
    typer.echo("The books agree now.")


def _table(found: Sequence[Difference], left: set[str], *, applied: bool) -> Table:
    table = Table()
    for title in ("Account", "At the processor", "What", "Theirs", "Ours", ""):
        table.add_column(title, no_wrap=True)
    for each in found:
        mended = applied and each.id not in left
        outcome = "mended" if mended else "--apply mends it" if each.mend else "look by hand"
        account = ids.to_wire("acct", each.account_id)
        table.add_row(account, each.id, each.what, each.theirs, each.ours, outcome)
    return table


def _advice(left: Sequence[Difference], *, applied: bool) -> str:
    count = f"{len(left)} difference{'' if len(left) == 1 else 's'}"
    if not applied and any(difference.mend for difference in left):
        return f"{count}. --apply enters here what the processor has."
    return f"{count} that somebody has to look at."
