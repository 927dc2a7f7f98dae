"""Calls that need several requests, since protocol version 2026-07-28.

In place of the result, a server can ask for input, or to send the request again with a state.
"""

import asyncio
from collections.abc import Awaitable, Callable

import mcp_types as types
from mcp.client.session import ClientSession
from pydantic import TypeAdapter

from rota.mcp.errors import CallRejected, InvalidResponse

_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
# Each pause is twice as long as the last one, and the time of the call limits their number.
FIRST_PAUSE_S = 0.1
_ASKS_FOR_INPUT = "The tool asks for input, which Rota cannot give."


async def final_result(
    session: ClientSession,
    params: types.CallToolRequestParams,
    before_round: Callable[[], Awaitable[None]],
) -> types.CallToolResult:
    """Sends the call until the server responds with its result.

    `before_round` runs before each request, and can still raise.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        await before_round()
        result = await session.send_request(types.CallToolRequest(params=params), _RESULT)
        if isinstance(result, types.CallToolResult):
            return result
        if result.input_requests:
            if result.request_state is not None:
                # The server may have begun the call.
                raise InvalidResponse(_ASKS_FOR_INPUT)
            # Rota declares no capability to give any.
            raise CallRejected(
                _ASKS_FOR_INPUT, types.MISSING_REQUIRED_CLIENT_CAPABILITY, is_modern=True
            )
        params = params.model_copy(update={"request_state": result.request_state})
        await asyncio.sleep(pause_s)
        pause_s *= 2
