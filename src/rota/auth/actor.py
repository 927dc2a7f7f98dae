"""Who is recorded in the audit trail for what a request does."""

from rota.auth.caller import Caller
from rota.platform import audit, ids
from rota.platform.errors import ApiError


def act_as(caller: Caller | ApiError, address: str) -> None:
    """From now on, what the request does is recorded for this caller."""
    audit.act_as(_actor(caller, address))


def _actor(caller: Caller | ApiError, address: str) -> audit.Actor:
    request_id = audit.actor().request_id
    if not isinstance(caller, Caller):
        # A sign-in has no credential before it ends.
        return audit.Actor("user", request_id=request_id, address=address)
    if caller.key_id is not None:
        via = ids.to_wire("key", caller.key_id)
        return audit.Actor("key", caller.user_id, via, request_id, address)
    if caller.token is not None:
        return audit.Actor("user", caller.user_id, caller.token, request_id, address)
    assert caller.session_id is not None
    via = ids.to_wire("sess", caller.session_id)
    return audit.Actor("user", caller.user_id, via, request_id, address)
