"""The pages of the simulated Stripe server: checkout and home."""

from collections.abc import Sequence
from html import escape

from rota.dev import idp_page
from rota.dev.idp_page import HEADERS
from rota.dev.stripe.wire import Object

__all__ = ["HEADERS", "checkout", "closed", "home"]

STYLE = """
.total { margin: 4px 0 16px; font-size: 2rem; font-weight: 600; letter-spacing: -0.02em;
  font-variant-numeric: tabular-nums; color: inherit }
ul { margin: 0 0 16px; padding: 0; list-style: none }
li { display: flex; justify-content: space-between; padding: 10px 0;
  border-top: 1px solid var(--line); font-variant-numeric: tabular-nums }
input { width: 100%; font-variant-numeric: tabular-nums }
.go { width: 100%; margin-top: 16px }
.quiet { margin-top: 8px; background: var(--surface); color: var(--ink);
  border-color: var(--line-strong) }
.quiet:hover { background: var(--fill) }
.quiet:active { background: var(--fill-strong) }
.cards { display: grid; grid-template-columns: auto 1fr; gap: 4px 12px; margin: 8px 0 0;
  font-size: 0.8125rem; color: var(--ink-2) }
.cards dt { white-space: nowrap; font-variant-numeric: tabular-nums }
.cards dd { margin: 0 }
.test { margin: 20px 0 0; padding-top: 16px; font-size: 0.8125rem;
  border-top: 1px solid var(--line) }
"""

CARD = "4242 4242 4242 4242"


def _page(title: str, body: str) -> str:
    return idp_page.page(title, body, note="Simulated Stripe server. No money moves.", style=STYLE)


def dollars(cents: int) -> str:
    return f"${cents / 100:,.2f}"


def checkout(
    session: Object, lines: Sequence[Object], trial_days: int, card: str = CARD, problem: str = ""
) -> str:
    monthly = session["mode"] == "subscription"
    items = "".join(
        f"<li><span>{escape(line['title'])}"
        f"{' × ' + str(line['quantity']) if line['quantity'] > 1 else ''}</span>"
        f"<span>{dollars(line['cents'] * line['quantity'])}</span></li>"
        for line in lines
    )
    period = " a month" if monthly else ""
    trial = f"<p>Free for {trial_days} days, then billed each month.</p>" if trial_days else ""
    warning = (
        f'<p class="problem" id="problem" role="alert">{escape(problem)}</p>' if problem else ""
    )
    invalid = ' aria-invalid="true" aria-describedby="problem"' if problem else ""
    email = session["customer_email"] or (session["customer_details"] or {}).get("email")
    payer = f"<p>For {escape(email)}</p>" if email else ""
    return _page(
        "Subscribe" if monthly else "Pay",
        f'<p class="total">{dollars(session["amount_total"])}{period}</p>{trial}'
        f'<ul>{items}</ul>{payer}{warning}<form method="post">'
        '<label for="card">Card number</label>'
        f'<input id="card" name="card" inputmode="numeric" value="{escape(card)}"{invalid}>'
        '<button class="go" name="action" value="pay">Pay</button>'
        '<button class="go quiet" name="action" value="cancel">Cancel</button></form>'
        '<p class="test">Other test cards:</p>'
        '<dl class="cards"><dt>4000 0000 0000 0002</dt><dd>declined</dd>'
        "<dt>4000 0000 0000 0341</dt><dd>accepted now, declined at the next renewal</dd></dl>",
    )


def closed(session: Object) -> str:
    if session["status"] == "complete":
        return _page("Paid", "<p>This checkout has been paid. You can close this page.</p>")
    return _page("Expired", "<p>This checkout has expired. Go back and start a new one.</p>")


def home(sessions: Sequence[Object], webhook_url: str | None) -> str:
    still_open = "".join(
        f'<li><a href="{escape(session["url"])}">{escape(session["id"][:24])}…</a>'
        f"<span>{dollars(session['amount_total'])}</span></li>"
        for session in sessions
        if session["status"] == "open"
    )
    return _page(
        "Simulated Stripe server",
        "<p>For development on this machine. No money moves.</p>"
        f"<p>Webhooks go to<br><code>{escape(webhook_url or 'not set')}</code></p>"
        f"<p>Open checkouts</p><ul>{still_open or '<li>None</li>'}</ul>",
    )
