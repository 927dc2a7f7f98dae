"""Questions of an agent to a person. They wait like tool calls, and the decision is the answer."""

from rota.tasks.model import ReviewItem

# The name of the built-in tool with which an agent asks.
ASK = "ask_person"


def is_question(item: ReviewItem) -> bool:
    """Whether this item of a review is a question, and not a call of a server's tool."""
    return item["tool"] == ASK and item["server"] is None
