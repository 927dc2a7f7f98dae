"""The definitions of the demonstration tools. Together they have every kind of field."""

from typing import Any

TICKET_ID = {
    "type": "string",
    "title": "Ticket",
    "description": "The number of the ticket.",
    "pattern": "^T-[0-9]{4}$",
    "examples": ["T-4821"],
}
TAGS = {
    "type": "array",
    "title": "Tags",
    "description": "The tags of the ticket.",
    "items": {
        "type": "string",
        "enum": ["login", "billing", "delivery", "account", "return", "urgent"],
    },
    "minItems": 1,
    "maxItems": 3,
    "uniqueItems": True,
}
LIMIT = {
    "type": "integer",
    "title": "Results",
    "description": "The most results.",
    "minimum": 1,
    "maximum": 20,
    "default": 5,
}
QUERY = {
    "type": "string",
    "title": "Search",
    "description": "The words to search for.",
    "minLength": 1,
    "maxLength": 200,
}


def _tool(
    name: str,
    title: str,
    description: str,
    properties: dict[str, Any],
    required: tuple[str, ...] = (),
    **hints: bool,
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        "annotations": {"title": title, "openWorldHint": False, **hints},
    }


def _reading(name: str, title: str, description: str, *rest: Any) -> dict[str, Any]:
    return _tool(name, title, description, *rest, readOnlyHint=True)


INVOICE = {
    "type": "object",
    "title": "Invoice",
    "properties": {
        "invoiceId": {"type": "string", "title": "Invoice", "pattern": "^INV-[0-9]{4}$"},
        "supplier": {"type": "string", "title": "Supplier", "maxLength": 100},
        "amountUsd": {"type": "number", "title": "Amount in dollars", "minimum": 0.01},
        "dueDate": {"type": "string", "title": "Due", "format": "date"},
    },
    "required": ["invoiceId", "supplier", "amountUsd"],
    "additionalProperties": False,
}

_HELPDESK = [
    _reading(
        "get_ticket",
        "Get a ticket",
        "Returns a ticket with its messages, its customer and earlier replies.",
        {"ticketId": TICKET_ID},
        ("ticketId",),
    ),
    _reading(
        "search_tickets",
        "Search tickets",
        "Returns the tickets that have any of the words.",
        {"query": QUERY, "limit": LIMIT},
        ("query",),
    ),
    _tool(
        "reply_to_ticket",
        "Reply to a ticket",
        "Sends a reply to the customer by email and sets the status of the ticket.",
        {
            "ticketId": TICKET_ID,
            "message": {
                "type": "string",
                "title": "Message",
                "description": "The text that the customer gets, in Markdown.",
                "minLength": 1,
                "maxLength": 4000,
            },
            "status": {
                "type": "string",
                "title": "Status afterwards",
                "enum": ["open", "pending", "solved"],
                "default": "solved",
            },
            "tags": TAGS,
            "sendCopy": {
                "type": "boolean",
                "title": "Send me a copy",
                "description": "Whether the owner of the ticket gets a copy.",
                "default": False,
            },
        },
        ("ticketId", "message", "status"),
        readOnlyHint=False,
        destructiveHint=False,
        idempotentHint=False,
    ),
]

_SET_TAGS = _tool(
    "set_tags",
    "Set tags",
    "Replaces the tags of a ticket.",
    {"ticketId": TICKET_ID, "tags": TAGS},
    ("ticketId", "tags"),
    readOnlyHint=False,
    destructiveHint=False,
    idempotentHint=True,
)
# What the vendor makes of it later: it does more than before, under the same name.
_SET_TAGS_CHANGED = _tool(
    "set_tags",
    "Set tags",
    "Replaces the tags of a ticket and tells the customer about the change by email.",
    {
        "ticketId": TICKET_ID,
        "tags": TAGS,
        "notify": {"type": "boolean", "title": "Tell the customer", "default": True},
    },
    ("ticketId", "tags"),
    readOnlyHint=False,
    destructiveHint=True,
    idempotentHint=False,
)

_HELPCENTER = [
    _reading(
        "search",
        "Search articles",
        "Returns the articles that have any of the words, the best first.",
        {"query": QUERY, "limit": {**LIMIT, "default": 3}},
        ("query",),
    ),
    _reading(
        "get_article",
        "Get an article",
        "Returns an article with its answer and its steps.",
        {
            "articleId": {
                "type": "string",
                "title": "Article",
                "description": "The number of the article.",
                "pattern": "^KB-[0-9]{3}$",
                "examples": ["KB-101"],
            }
        },
        ("articleId",),
    ),
]

_ACCOUNTING = [
    _reading(
        "list_open_bills",
        "List open bills",
        "Returns the supplier invoices that are approved and not paid.",
        {
            "dueBefore": {
                "type": "string",
                "title": "Due before",
                "description": "Only bills that are due before this day.",
                "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            }
        },
    ),
    _tool(
        "prepare_payment_batch",
        "Prepare a payment batch",
        "Prepares payments at the bank. A person releases the batch there.",
        {
            "invoices": {
                "type": "array",
                "title": "Invoices",
                "description": "The invoices to pay.",
                "items": INVOICE,
                "minItems": 1,
                "maxItems": 20,
            },
            "payOn": {
                "type": "string",
                "title": "Pay on",
                "description": "The day of the payment.",
                "format": "date",
            },
            "account": {
                "type": "string",
                "title": "Pay from",
                "enum": ["operating", "payroll", "reserve"],
                "default": "operating",
            },
            "limitUsd": {
                "type": "number",
                "title": "Limit in dollars",
                "description": "The batch is refused if its total is above this amount.",
                "minimum": 1,
                "maximum": 10000,
                "default": 5000,
            },
            "note": {
                "type": "string",
                "title": "Note",
                "description": "Shown to the person who releases the batch.",
                "maxLength": 140,
            },
        },
        ("invoices", "payOn", "account", "limitUsd"),
        readOnlyHint=False,
        destructiveHint=True,
        idempotentHint=False,
    ),
]


def tools_of(server: str, *, changed: bool = False) -> list[dict[str, Any]]:
    """The tools of one of the servers, before or after its vendor changed it."""
    if server == "helpdesk":
        return [*_HELPDESK, _SET_TAGS_CHANGED if changed else _SET_TAGS]
    return {"helpcenter": _HELPCENTER, "accounting": _ACCOUNTING}[server]
