"""Calls that need several requests, since protocol version 2026-07-28.

In place of the result, a server can ask for input, or to send the request again with a state.
"""

import asyncio

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from rota.mcp.errors import CallRejected, InvalidResponse, sentence

_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
# Each pause is twice as long as the last one, and the time of the call limits their number.
FIRST_PAUSE_S = 0.1


async def final_result(
    session: ClientSession, params: types.CallToolRequestParams
) -> types.CallToolResult:
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            result = await session.send_request(types.CallToolRequest(params=params), _RESULT)
        except MCPError as error:
            if params.request_state is None or error.code == types.REQUEST_TIMEOUT:
                raise
            # The server has begun the call, so it must not count as one that was not made.
            reason = sentence(error.message[:200])
            raise InvalidResponse(f"The server did not finish the call: {reason}") from None
        if isinstance(result, types.CallToolResult):
            return result
        if result.input_requests:
            # Rota declares no capability to give any.
            raise CallRejected(
                "The tool asks for input, which Rota cannot give.",
                types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                is_modern=True,
            )
        params = params.model_copy(update={"request_state": result.request_state})
        await asyncio.sleep(pause_s)
        pause_s *= 2
