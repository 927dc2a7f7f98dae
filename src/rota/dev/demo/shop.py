"""The invented company behind the demonstration tool servers, and what its tools do.

Each shop has its own state, in a small file, so that what one account does stays in that account.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

TICKETS: dict[str, dict[str, Any]] = {
    "T-4821": {
        "subject": "Cannot sign in after the password reset",
        "customer": {"name": "Mina Okafor", "email": "mina@northwind.example", "plan": "Team"},
        "messages": [
            "I reset my password this morning. The new one is refused on my phone and my laptop.",
            "Still not working after an hour. We have a delivery to confirm before noon.",
        ],
        "tags": ["login"],
    },
    "T-4822": {
        "subject": "Where is my invoice for October?",
        "customer": {"name": "Jonas Weber", "email": "jonas@lindqvist.example", "plan": "Solo"},
        "messages": ["I paid in October and need the invoice for my accountant. Where is it?"],
        "tags": ["billing"],
    },
    "T-4823": {
        "subject": "Delivery says complete, but two boxes are missing",
        "customer": {"name": "Aiko Tanaka", "email": "aiko@harbour.example", "plan": "Team"},
        "messages": ["Order 77120 arrived with 3 of 5 boxes. The tracking page says delivered."],
        "tags": ["delivery"],
    },
    "T-4824": {
        "subject": "How do I add a colleague?",
        "customer": {"name": "Luis Prado", "email": "luis@pradofilms.example", "plan": "Team"},
        "messages": ["My colleague should be able to order too. How do I invite her?"],
        "tags": ["account"],
    },
    "T-4825": {
        "subject": "Return of a damaged label printer",
        "customer": {"name": "Ruth Adler", "email": "ruth@adler.example", "plan": "Solo"},
        "messages": ["The printer was damaged when it arrived. How do I send it back?"],
        "tags": ["return"],
    },
}

ARTICLES: dict[str, dict[str, Any]] = {
    "KB-101": {
        "title": "The new password is refused after a reset",
        "answer": "After a reset, each device keeps the old session until you sign out on it. "
        "Sign out everywhere once, and the new password works.",
        "steps": [
            "Open **Settings → Sessions** on the device where you changed the password.",
            "Choose **Sign out everywhere**.",
            "Sign in again with the new password.",
        ],
        "words": "password reset login sign refused session locked account",
    },
    "KB-102": {
        "title": "Find and download invoices",
        "answer": "Every invoice is on the billing page, as a PDF, from the day after the payment.",
        "steps": [
            "Open **Billing → Invoices**.",
            "Choose the month.",
            "Choose **Download PDF**.",
        ],
        "words": "invoice billing receipt october download payment bill accountant",
    },
    "KB-103": {
        "title": "A delivery is incomplete",
        "answer": "An order can travel in several parcels, and the page counts only the last scan. "
        "If a parcel is missing after two working days, we send it again free of charge.",
        "steps": ["Open **Orders** and choose the order.", "Choose **Report a missing parcel**."],
        "words": "delivery missing box parcel tracking order complete boxes",
    },
    "KB-104": {
        "title": "Invite colleagues to your account",
        "answer": "Owners and admins can invite colleagues. An invitation is valid for seven days.",
        "steps": [
            "Open **Settings → Members**.",
            "Choose **Invite**.",
            "Enter the address and a role.",
        ],
        "words": "colleague invite member add user team order",
    },
    "KB-105": {
        "title": "Return a damaged item",
        "answer": "You can return a damaged item within 30 days. The return label is free.",
        "steps": ["Open **Orders → Return**.", "Print the label.", "Hand in the parcel."],
        "words": "return damaged broken refund label printer item send",
    },
}

# The invoice, the supplier, the amount in dollars, and in how many days it is due.
BILLS = [
    ("INV-2041", "Bright Paper Co.", 1240.0, 4),
    ("INV-2042", "Orchard Logistics", 860.5, 6),
    ("INV-2043", "Castle Energy", 312.75, 9),
    ("INV-2044", "Tidewater Cleaning", 198.0, 14),
]


class ToolFailed(Exception):
    """The tool reports that it failed, with the reason."""


class Shop:
    """The state of one shop: what its tools have changed."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.state: dict[str, Any] = {"replies": [], "tags": {}, "batches": [], "changed": False}
        if file and file.exists():
            self.state |= json.loads(file.read_text())

    def change_definition(self) -> None:
        """Changes the definition of a tool, as the vendor of a real server could."""
        self.state["changed"] = True
        self._save()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        calls: dict[str, Callable[..., dict[str, Any]]] = {
            "get_ticket": self._get_ticket,
            "search_tickets": self._search_tickets,
            "reply_to_ticket": self._reply,
            "set_tags": self._set_tags,
            "search": self._search_articles,
            "get_article": self._get_article,
            "list_open_bills": self._list_open_bills,
            "prepare_payment_batch": self._prepare_batch,
        }
        try:
            return calls[tool](**arguments)
        except TypeError as error:
            raise ToolFailed(f"The arguments are not valid: {error}") from None

    def _get_ticket(self, ticketId: str) -> dict[str, Any]:  # noqa: N803
        if ticketId not in TICKETS:
            raise ToolFailed(f"Ticket {ticketId} not found. There are {', '.join(TICKETS)}.")
        replies = [each for each in self.state["replies"] if each["ticketId"] == ticketId]
        status = replies[-1]["status"] if replies else "open"
        tags = self.state["tags"].get(ticketId, TICKETS[ticketId]["tags"])
        found = {"ticketId": ticketId, **TICKETS[ticketId], "tags": tags}
        return {**found, "status": status, "replies": replies}

    def _search_tickets(self, query: str, limit: int = 5) -> dict[str, Any]:
        def text(number: str) -> str:
            return " ".join([TICKETS[number]["subject"], *TICKETS[number]["messages"]])

        ranked = _ranked(query, {number: text(number) for number in TICKETS})
        found = ranked or list(TICKETS)
        tickets = [{"ticketId": n, "subject": TICKETS[n]["subject"]} for n in found[:limit]]
        return {"tickets": tickets, "total": len(found)}

    def _reply(
        self,
        ticketId: str,  # noqa: N803
        message: str,
        status: str,
        tags: list[str] | None = None,
        sendCopy: bool = False,  # noqa: N803
    ) -> dict[str, Any]:
        ticket = self._get_ticket(ticketId)
        reply = {"ticketId": ticketId, "message": message, "status": status, "sendCopy": sendCopy}
        self.state["replies"].append(reply)
        if tags:
            self.state["tags"][ticketId] = tags
        self._save()
        return {"sent": True, "to": ticket["customer"]["email"], **reply, "tags": tags or []}

    def _set_tags(self, ticketId: str, tags: list[str], notify: bool = False) -> dict[str, Any]:  # noqa: N803
        self._get_ticket(ticketId)
        self.state["tags"][ticketId] = tags
        self._save()
        return {"ticketId": ticketId, "tags": tags}

    def _search_articles(self, query: str, limit: int = 3) -> dict[str, Any]:
        ranked = _ranked(query, {n: f"{a['title']} {a['words']}" for n, a in ARTICLES.items()})
        found = ranked or list(ARTICLES)
        articles = [{"articleId": n, "title": ARTICLES[n]["title"]} for n in found[:limit]]
        return {"articles": articles, "total": len(found)}

    def _get_article(self, articleId: str) -> dict[str, Any]:  # noqa: N803
        if articleId not in ARTICLES:
            raise ToolFailed(f"Article {articleId} not found. There are {', '.join(ARTICLES)}.")
        article = ARTICLES[articleId]
        return {"articleId": articleId, **{k: article[k] for k in ("title", "answer", "steps")}}

    def _list_open_bills(self, dueBefore: str | None = None) -> dict[str, Any]:  # noqa: N803
        paid = {bill["invoiceId"] for batch in self.state["batches"] for bill in batch["invoices"]}
        today = datetime.now(UTC).date()
        bills: list[dict[str, Any]] = [
            {
                "invoiceId": invoice,
                "supplier": supplier,
                "amountUsd": amount,
                "dueDate": (today + timedelta(days=days)).isoformat(),
            }
            for invoice, supplier, amount, days in BILLS
            if invoice not in paid
        ]
        if dueBefore:
            bills = [bill for bill in bills if bill["dueDate"] < dueBefore]
        return {"bills": bills, "totalUsd": sum(bill["amountUsd"] for bill in bills)}

    def _prepare_batch(
        self,
        invoices: list[dict[str, Any]],
        payOn: str,  # noqa: N803
        account: str,
        limitUsd: float,  # noqa: N803
        note: str = "",
    ) -> dict[str, Any]:
        total = sum(invoice["amountUsd"] for invoice in invoices)
        if total > limitUsd:
            raise ToolFailed(f"The total of ${total:,.2f} is above the limit of ${limitUsd:,.2f}.")
        batch = {"invoices": invoices, "payOn": payOn, "account": account, "note": note}
        self.state["batches"].append(batch)
        self._save()
        number = f"B-{len(self.state['batches']):03d}"
        return {"batch": number, "totalUsd": total, **batch, "limitUsd": limitUsd}

    def _save(self) -> None:
        if self._file:
            written = self._file.with_suffix(".new")
            written.write_text(json.dumps(self.state))
            written.replace(self._file)


def _ranked(query: str, texts: dict[str, str]) -> list[str]:
    """The names of the texts that share words with the query, the best first."""
    words = {word.strip(".,?!").lower() for word in query.split()}
    scores = {
        name: sum(word[:6] in text.lower() for word in words if len(word) > 2)
        for name, text in texts.items()
    }
    return sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])
