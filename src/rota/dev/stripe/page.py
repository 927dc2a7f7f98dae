"""The pages of the simulated Stripe server: checkout and home."""

from collections.abc import Sequence
from html import escape

from rota.dev.idp_page import HEADERS, STYLE
from rota.dev.stripe.wire import Object

__all__ = ["HEADERS", "checkout", "closed", "home"]

OWN_STYLE = """
.total { margin: .25rem 0 1rem; font-size: 2rem; font-weight: 600; color: inherit }
ul { margin: 0 0 1rem; padding: 0; list-style: none }
li { display: flex; justify-content: space-between; padding: .6rem 0;
  border-top: 1px solid var(--line) }
input { width: 100%; font-variant-numeric: tabular-nums }
.go { width: 100%; margin-top: 1rem }
.go:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px }
.problem { padding: .6rem .75rem; color: var(--bad); border: 1px solid; border-radius: .6rem }
:root { --bad: #b3261e }
@media (prefers-color-scheme: dark) { :root { --bad: #ff9a92 } }
.quiet { margin-top: .5rem; background: none; color: var(--soft); border: 1px solid var(--line) }
.note { margin: 1.25rem 0 0; padding-top: 1rem; font-size: .85rem;
  border-top: 1px solid var(--line) }
.cards { display: grid; grid-template-columns: auto 1fr; gap: .25rem .75rem; margin: .5rem 0 0;
  font-size: .85rem; color: var(--soft) }
.cards dt { white-space: nowrap; font-variant-numeric: tabular-nums }
.cards dd { margin: 0 }
"""

CARD = "4242 4242 4242 4242"


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{OWN_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )


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
        '<p class="note">This is a simulated Stripe page. No money moves. Other test cards:</p>'
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
