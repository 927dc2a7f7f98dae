"""What people read about a call that stops at a gate again, and what the model reads about a call
that is not made."""

from rota.mcp.errors import sentence

UNKNOWN = (
    "Rota did not get the result of this call, so it is unknown whether it took effect. Check the "
    "tool's system. Approve to repeat the call, or reject to continue without it."
)


def unknown_after(message: str) -> str:
    """For a call to which the server responded with this error."""
    return (
        f"The tool server responded with an error: {sentence(message)} It is unknown whether the "
        "call took effect. Check the tool's system. Approve to repeat the call, or reject to "
        "continue without it."
    )


CHANGED = (
    "The tool's definition or its server changed after the call was planned or approved. Review "
    "the call again. Approve to make it, or reject to continue without it."
)
AGAIN = (
    "A standing rule approved an attempt of this call, which failed or was interrupted. A rule "
    "does not approve another one. Approve to repeat the call, or reject to continue without it."
)
UNDECIDED = (
    "The previous run ended while the call was waiting for a person. Approve to make the call, "
    "or reject to continue without it."
)
GONE = (
    "The tool no longer exists on the server that the call was planned for, or this agent can no "
    "longer use it."
)
UNKNOWN_AND_GONE = (
    "Rota did not get the result of this call, so it is unknown whether it took effect, and the "
    "tool no longer exists. Check its system before you continue."
)
EARLIER_VERSION = (
    "The service was upgraded before the call started, so it was not made. Call the tool again."
)
