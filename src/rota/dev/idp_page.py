"""The pages of the development identity provider."""

from html import escape
from urllib.parse import urlsplit

# The pages have no scripts, load nothing and cannot be framed.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}

PEOPLE = {
    "ada@example.test": "Ada Lovelace",
    "grace@example.test": "Grace Hopper",
    "katherine@example.test": "Katherine Johnson",
    "alan@example.test": "Alan Turing",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #66707f; --line: #d9dee6;
  --paper: #fff; --ground: #f3f5f8; --accent: #3457d5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf2; --soft: #9aa5b5;
  --line: #333d4b; --paper: #1b222c; --ground: #12171e; --accent: #8ba3ff; } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem;
  background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
main { width: 100%; max-width: 25rem; padding: 2rem; background: var(--paper);
  border: 1px solid var(--line); border-radius: 1rem }
h1 { margin: 0; font-size: 1.35rem }
p { margin: .25rem 0 1.25rem; color: var(--soft) }
.person { display: flex; gap: .75rem; align-items: center; width: 100%; margin-bottom: .5rem;
  padding: .6rem .75rem; border: 1px solid var(--line); border-radius: .6rem; font: inherit;
  color: inherit; text-align: left; background: none; cursor: pointer }
.person:hover, .person:focus-visible, input:focus-visible { outline: none;
  border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent) }
.person b { display: grid; place-items: center; width: 2.25rem; height: 2.25rem; flex: none;
  border-radius: 50%; background: var(--accent); color: var(--paper) }
.person small { display: block; color: var(--soft) }
label { display: block; margin: 1rem 0 .35rem; color: var(--soft); font-size: .9rem }
.other { display: flex; gap: .5rem }
input { flex: 1; min-width: 0; padding: .6rem .75rem; font: inherit; color: inherit;
  border: 1px solid var(--line); border-radius: .6rem; background: none }
.go { padding: .6rem 1rem; border: 0; border-radius: .6rem; font: inherit; cursor: pointer;
  background: var(--accent); color: var(--paper) }
.problem { color: #c0392b }
code { font-size: .85rem; overflow-wrap: anywhere }
"""


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )


def choose(redirect_uri: str, problem: str = "") -> str:
    """The form posts to its own address, which contains the authorization request."""
    people = "".join(
        f'<button class="person" name="email" value="{escape(email)}">'
        f"<b>{escape(name[0])}</b><span>{escape(name)}<small>{escape(email)}</small></span></button>"
        for email, name in PEOPLE.items()
    )
    warning = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    return _page(
        "Choose a user",
        f"<p>Sign in to {escape(urlsplit(redirect_uri).netloc)}. No password is needed.</p>"
        f'{warning}<form method="post">{people}'
        '<label for="other">Another email address</label><div class="other">'
        '<input id="other" name="other" type="email" placeholder="you@example.test">'
        '<button class="go">Continue</button></div></form>',
    )


def home(issuer: str) -> str:
    return _page(
        "Development identity provider",
        "<p>For development on this machine. Users sign in without a password.</p>"
        f"<p>Issuer<br><code>{escape(issuer)}</code></p>"
        "<p>To get an ID token in a script<br><code>curl -s "
        f"{escape(issuer)}/dev/token -H 'Content-Type: application/json' "
        "-d '{&quot;sub&quot;: &quot;ada&quot;}'</code></p>",
    )
