"""Renders a message as a mail: plain text and HTML, without remote images, scripts or tracking.

Texts of others are escaped. Headers cannot contain line breaks: the texts are one line each, and
the email package refuses all others.
"""

from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from html import escape
from urllib.parse import urlsplit

from rota.notifications.channels import UNUSUAL_ADDRESS, Refused
from rota.notifications.messages import Message
from rota.notifications.news import Line
from rota.platform import clock

_STYLE = """
body{margin:0;padding:24px 12px;background:#f6f7f8;color:#1b1f24;
font:15px/1.5 -apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
.card{max-width:560px;margin:0 auto;padding:24px;background:#fff;border:1px solid #dfe3e8;
border-radius:8px}
h1{margin:0 0 16px;font-size:18px;line-height:1.35}
.line{margin:0 0 16px;padding:0 0 0 12px;border-left:3px solid #c9d1da;overflow-wrap:anywhere}
.what{font-weight:600}.what a{color:inherit;text-decoration:none}
.note{color:#57606a;font-size:13px}
.button{display:inline-block;padding:10px 18px;background:#2f5bd8;color:#fff!important;
border-radius:6px;text-decoration:none;font-weight:600}
.foot{max-width:560px;margin:16px auto 0;color:#57606a;font-size:12px}.foot a{color:#57606a}
@media (prefers-color-scheme:dark){body{background:#111418;color:#e6e9ed}
.card{background:#1a1e24;border-color:#2c333c}.line{border-left-color:#3b444f}
.note,.foot,.foot a{color:#9aa5b1}.button{background:#3f6be8}}
"""
_NOTHING_DECIDED = (
    "Opening a link does not approve or reject anything. You decide after you have signed in."
)


def render(message: Message, sender: str, to: str) -> EmailMessage:
    """The mail from `sender`, such as `Rota <rota@example.com>`, to one address."""
    mail = EmailMessage(policy=SMTP)
    host = urlsplit(message.base_url).hostname or "localhost"
    name, address = parseaddr(sender)
    mail["From"] = Address(name or "Rota", addr_spec=address)
    try:
        to.encode("ascii")
        mail["To"] = Address(addr_spec=to)
    except (MessageError, ValueError, IndexError):
        raise Refused(UNUSUAL_ADDRESS) from None
    mail["Subject"] = message.subject
    mail["Date"] = format_datetime(clock.now())
    mail["Message-ID"] = f"<{message.id}@{host}>"
    if message.thread is not None:
        # Emails about the same task are one conversation.
        mail["In-Reply-To"] = mail["References"] = f"<{message.thread}@{host}>"
    # Tells vacation responders not to answer.
    mail["Auto-Submitted"] = "auto-generated"
    if message.unsubscribe_url is not None:
        mail["List-Unsubscribe"] = f"<{message.unsubscribe_url}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail.set_content(_text(message))
    mail.add_alternative(_html(message), subtype="html")
    return mail


def _text(message: Message) -> str:
    parts = [message.sentence]
    for line in message.lines:
        shown = [line.text, _origin(line), line.detail, message.base_url + line.path]
        parts.append("\n".join(filter(None, shown)))
    if message.more:
        parts.append(f"And {message.more} more.")
    if not message.lines or message.more:
        parts.append(f"{message.action}: {message.url}")
    parts.append(_NOTHING_DECIDED)
    parts.append(f"Change what you are notified about: {message.settings_url}")
    if message.unsubscribe_url is not None:
        parts.append(f"Unsubscribe from these emails: {message.unsubscribe_url}")
    return "\n\n".join(parts) + "\n"


def _html(message: Message) -> str:
    lines = "".join(_html_line(message, line) for line in message.lines)
    more = f'<p class="note">And {message.more} more.</p>' if message.more else ""
    turn_off = ""
    if message.unsubscribe_url is not None:
        turn_off = (
            f' · <a href="{escape(message.unsubscribe_url)}">Unsubscribe from these emails</a>'
        )
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>{escape(message.subject)}</title>
<style>{_STYLE}</style>
</head>
<body>
<div class="card">
<h1>{escape(message.heading)}</h1>
{lines}{more}
<p style="margin:24px 0 0"><a class="button" href="{escape(message.url)}">{message.action}</a></p>
</div>
<p class="foot">{_NOTHING_DECIDED}<br>
<a href="{escape(message.settings_url)}">Change what you are notified about</a>{turn_off}</p>
</body>
</html>
"""


def _html_line(message: Message, line: Line) -> str:
    url = escape(message.base_url + line.path)
    notes = "<br>".join(escape(each) for each in (_origin(line), line.detail) if each)
    return (
        f'<div class="line"><div class="what"><a href="{url}">{escape(line.text)}</a></div>'
        f'<div class="note">{notes}</div></div>\n'
    )


def _origin(line: Line) -> str:
    """The agent and the task, or the account."""
    if line.about in line.text:
        return f"Agent: {line.agent}" if line.agent else ""
    if line.task_id is None:
        return f"Account: {line.about}"
    return f"{line.agent}, task: {line.about}" if line.agent else f"Task: {line.about}"
