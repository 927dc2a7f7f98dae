"""The pages of the development identity provider, in the look of the dashboard."""

from html import escape
from urllib.parse import quote, urlsplit

MARK = (
    "M8.75.79A7.25 7.25 0 0 1 14.62 10.96L10.17 8.38A2.2 2.2 0 0 0 8.75 5.93ZM13.87 12.26A7.25 7.25"
    " 0 0 1 2.13 12.26L4.18 11.07A4.9 4.9 0 0 0 11.82 11.07ZM1.38 10.96A7.25 7.25 0 0 1 7.25.79"
    "L7.25 3.16A4.9 4.9 0 0 0 3.43 9.77Z"
)
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><style>path{fill:#3049c7}'
    f'@media (prefers-color-scheme:dark){{path{{fill:#a6b6ff}}}}</style><path d="{MARK}"/></svg>'
)

CSP = "Content-Security-Policy"
# The pages have no scripts, load nothing and cannot be framed.
HEADERS = {
    "Cache-Control": "no-store",
    CSP: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
    "base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}

PEOPLE = {
    "ada@example.test": "Ada Lovelace",
    "grace@example.test": "Grace Hopper",
    "katherine@example.test": "Katherine Johnson",
    "alan@example.test": "Alan Turing",
}

STYLE = """
:root { color-scheme: light dark;
  --canvas: light-dark(#f7f6f3, #111110); --surface: light-dark(#ffffff, #191918);
  --fill: light-dark(#f0f0ec, #242422); --fill-strong: light-dark(#e6e6e1, #30302d);
  --line: light-dark(#e7e7e2, #2a2a28); --line-strong: light-dark(#d4d4cd, #3d3d39);
  --line-control: light-dark(#92928a, #72726b);
  --ink: light-dark(#1b1b19, #eeeeea); --ink-2: light-dark(#4f4f49, #b9b9b2);
  --ink-3: light-dark(#66665f, #989890); --ink-on-accent: #ffffff;
  --accent: light-dark(#3049c7, #4c64e6); --accent-hover: light-dark(#263cab, #5068e8);
  --accent-press: light-dark(#1f3291, #435ad6); --accent-ink: light-dark(#2b43bd, #a6b6ff);
  --bad: light-dark(#b0271f, #ff958c); --bad-soft: light-dark(#fdeeec, #321a18);
  --bad-line: light-dark(#f2c8c3, #5e2d29);
  --shadow: 0 1px 2px light-dark(rgb(28 28 26 / 0.06), rgb(0 0 0 / 0.4));
  --font: -apple-system, BlinkMacSystemFont, "Segoe UI Variable Text", "Segoe UI", Roboto,
    "Noto Sans", "Helvetica Neue", "Liberation Sans", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace }
*, *::before, *::after { box-sizing: border-box }
* { margin: 0 }
body { min-height: 100dvh; display: grid; grid-template-columns: minmax(0, 1fr);
  align-content: center; justify-items: center; gap: 20px;
  padding: 24px 16px; background: var(--canvas); color: var(--ink);
  font: 400 0.875rem/1.4286 var(--font); -webkit-font-smoothing: antialiased }
button, input { font: inherit; color: inherit }
:focus-visible { outline: 2px solid var(--accent-ink); outline-offset: 2px }
.brand { display: flex; align-items: center; gap: 8px; font-weight: 600; font-size: 0.9375rem;
  letter-spacing: -0.01em }
.brand svg { width: 20px; height: 20px; fill: var(--accent-ink) }
main { width: 100%; max-width: 380px; padding: 24px; background: var(--surface);
  border: 1px solid var(--line); border-radius: 10px; box-shadow: var(--shadow) }
h1 { font-size: 1.25rem; font-weight: 600; line-height: 1.3; letter-spacing: -0.01em }
p { margin: 4px 0 20px; color: var(--ink-2); text-wrap: pretty }
.people { display: grid; margin: 0 -8px; padding: 0; list-style: none }
.person { display: flex; gap: 12px; align-items: center; width: 100%; min-height: 52px;
  padding: 8px; border: 0; border-radius: 6px; text-align: left; background: none;
  cursor: pointer }
.person:hover { background: var(--fill) }
.person:active { background: var(--fill-strong) }
.avatar { display: grid; place-items: center; width: 32px; height: 32px; flex: none;
  border-radius: 50%; background: var(--fill-strong); color: var(--ink-2); font-size: 0.75rem;
  font-weight: 600 }
.person strong { font-weight: 500 }
small { display: block; font-size: 0.8125rem; color: var(--ink-3) }
label { display: block; margin: 16px 0 6px; font-size: 0.8125rem; font-weight: 500 }
.other { display: flex; gap: 8px }
input { flex: 1; min-width: 0; min-height: 36px; padding: 7px 10px; background: var(--surface);
  border: 1px solid var(--line-control); border-radius: 6px }
input::placeholder { color: var(--ink-3); opacity: 1 }
input:focus-visible { outline-offset: -1px; border-color: var(--accent-ink) }
input[aria-invalid="true"] { border-color: var(--bad) }
.go { min-height: 36px; padding: 0 12px; border: 1px solid transparent; border-radius: 6px;
  background: var(--accent); color: var(--ink-on-accent); font-weight: 500; cursor: pointer;
  box-shadow: var(--shadow) }
.go:hover { background: var(--accent-hover) }
.go:active { background: var(--accent-press) }
.problem { margin: 0 0 16px; padding: 8px 12px; color: var(--bad); background: var(--bad-soft);
  border: 1px solid var(--bad-line); border-radius: 6px }
.note { margin: 0; font-size: 0.8125rem; color: var(--ink-3); text-align: center }
code { font: 0.8125rem/1.5 var(--mono); color: var(--ink); overflow-wrap: anywhere }
@media (max-width: 719px) {
  input, .go { min-height: 44px; font-size: 1rem } .person { min-height: 60px }
}
"""


def form_headers(origin: str) -> dict[str, str]:
    """For a page whose form leads to this provider, which then redirects to this origin."""
    # A policy cannot name an IPv6 address.
    target = "http:" if "[" in origin else origin
    policy = f"{HEADERS[CSP]}; form-action 'self' {target}"
    return HEADERS | {CSP: policy}


def page(title: str, body: str, *, note: str = "", style: str = "") -> str:
    """A whole page: one card under the logo."""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)} · Rota</title><link rel="icon" href="data:image/svg+xml,'
        f'{quote(ICON)}"><style>{STYLE}{style}</style></head><body>'
        f'<div class="brand"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="{MARK}"/></svg>'
        f"Rota</div><main><h1>{escape(title)}</h1>{body}</main>{below}</body></html>"
    )


def choose(redirect_uri: str, problem: str = "") -> str:
    """The form posts to its own address, which contains the authorization request."""
    people = "".join(
        f'<li><button class="person" name="email" value="{escape(email)}">'
        f'<span class="avatar" aria-hidden="true">{escape(_initials(name))}</span>'
        f"<span><strong>{escape(name)}</strong><small>{escape(email)}</small></span></button></li>"
        for email, name in PEOPLE.items()
    )
    warning = (
        f'<p class="problem" id="problem" role="alert">{escape(problem)}</p>' if problem else ""
    )
    invalid = ' aria-invalid="true" aria-describedby="problem"' if problem else ""
    return page(
        "Choose a user",
        f"<p>You are signing in to {escape(urlsplit(redirect_uri).netloc)}. "
        "No password is needed.</p>"
        f'{warning}<form method="post"><ul class="people">{people}</ul>'
        '<label for="other">Another email address</label><div class="other">'
        '<input id="other" name="other" type="email" autocomplete="off" '
        f'placeholder="you@example.test"{invalid}>'
        '<button class="go">Continue</button></div></form>',
        note="Development identity provider, for this machine only",
    )


def home(issuer: str) -> str:
    return page(
        "Development identity provider",
        "<p>For development on this machine. Users sign in without a password.</p>"
        f"<p>Issuer<br><code>{escape(issuer)}</code></p>"
        "<p>To get an ID token in a script<br><code>curl -s "
        f"{escape(issuer)}/dev/token -H 'Content-Type: application/json' "
        "-d '{&quot;sub&quot;: &quot;ada&quot;}'</code></p>",
    )


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split()[:2])
