"""What the clients of the providers send, and how they read chunks."""

from typing import Any

import pytest
from openai import AsyncOpenAI
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rota.platform.model_choice import ModelChoice
from rota.runs.models import Models
from tests.mcp.peers import listening


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o"),
        ("anthropic", "claude-3-5-haiku-latest"),
        ("google", "gemini-2.0-flash"),
    ],
)
@pytest.mark.parametrize("status", [429, 500, 529])
async def test_each_client_sends_a_failed_request_once(
    provider: Any, model: str, status: int
) -> None:
    seen: list[str] = []

    async def fail(request: Request) -> Response:
        seen.append(request.url.path)
        return JSONResponse({"error": {"message": "Not now.", "type": "overloaded"}}, status)

    everything = Starlette(routes=[Route("/{path:path}", fail, methods=["POST"])])
    async with listening(everything) as url:
        choice = ModelChoice.model_validate(
            {"provider": provider, "model": model, "apiKey": "k", "baseUrl": url}
        )
        client = Models({"default": choice}, None).chain("default").choose().model
        question: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Hello?")])]
        with pytest.raises(ModelHTTPError):
            await client.request(question, None, ModelRequestParameters())
    assert len(seen) == 1


async def test_requests_to_openai_are_those_of_its_library() -> None:
    sent: list[Any] = []

    async def receive(request: Request) -> Response:
        sent.append(await request.json())
        return JSONResponse({"error": {"message": "Not now."}}, 500)

    conversation: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("How many?")], instructions="Be brief."),
        ModelResponse(parts=[TextPart("Let me see."), ToolCallPart("count", {"of": "é"}, "c1")]),
        ModelRequest(parts=[ToolReturnPart("count", {"found": [1, None, 2.5]}, "c1")]),
    ]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [ToolDefinition(name="count", parameters_json_schema=schema)]
    answer = OutputObjectDefinition(json_schema=schema, name="answer")
    structured = ModelRequestParameters(
        function_tools=tools, output_mode="native", output_object=answer
    )
    settings = ModelSettings(max_tokens=50, extra_body={"user": "me"})

    async def request(model: Model, parameters: ModelRequestParameters) -> None:
        with pytest.raises(ModelHTTPError):
            await model.request(conversation, settings, parameters)
        with pytest.raises(ModelHTTPError):
            async with model.request_stream(conversation, settings, parameters):
                pass

    async with listening(Starlette(routes=[Route("/{p:path}", receive, methods=["POST"])])) as url:
        choice = ModelChoice.model_validate(
            {"provider": "openai", "model": "gpt-4o", "apiKey": "k", "baseUrl": url}
        )
        ours = Models({"default": choice}, None).chain("default").choose().model
        library = AsyncOpenAI(api_key="k", base_url=url, max_retries=0)
        plain = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=library))
        for model in (ours, plain):
            for parameters in (ModelRequestParameters(), structured):
                await request(model, parameters)
    assert isinstance(ours, OpenAIChatModel)
    assert type(ours.client.chat.completions) is not type(library.chat.completions)
    assert sent[:4] == sent[4:]
    text, _, data, streamed = sent[:4]
    assert "tools" not in text
    assert text["user"] == "me"
    assert [len(data["messages"]), len(data["tools"])] == [4, 1]
    assert data["response_format"]["json_schema"]["name"] == "answer"
    assert streamed["stream"] is True


def chunk(*choices: dict[str, Any], **more: Any) -> dict[str, Any]:
    known = {"id": "c", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}
    return {**known, "choices": list(choices), **more}


@pytest.mark.parametrize(
    "sent",
    [
        chunk({"index": 0, "delta": {"content": "é"}, "finish_reason": None}),
        chunk({"index": 0, "delta": {}, "finish_reason": "stop", "logprobs": None}, usage=None),
        chunk(
            {
                "index": 0,
                "delta": {
                    "role": "assistant",
                    "reasoning_content": "an extension",
                    "tool_calls": [{"index": 0, "id": "x", "function": {"arguments": "{"}}],
                },
            },
            obfuscation="abc",
        ),
        chunk(usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cost": 0.1}),
        # Services that deviate from the types.
        chunk({"index": 0, "delta": {"content": "x"}, "finish_reason": "eos"}),
        chunk({"delta": {"content": "x"}}),
        chunk({"index": 0, "delta": None}, usage={"prompt_tokens": 1.5}),
        {"choices": []},
        {"error": {"message": "overloaded"}},
    ],
)
async def test_chunks_are_those_of_the_library(sent: dict[str, Any]) -> None:
    """They are built another way, which is faster."""
    choice = ModelChoice.model_validate({"provider": "openai", "model": "gpt-4o", "apiKey": "k"})
    model = Models({"default": choice}, None).chain("default").choose().model
    assert isinstance(model, OpenAIChatModel)
    response: Any = None
    built = model.client._process_response_data(
        data=sent, cast_to=ChatCompletionChunk, response=response
    )
    expected: Any = construct_type(type_=ChatCompletionChunk, value=sent)
    assert built == expected
    assert built.model_dump(warnings=False) == expected.model_dump(warnings=False)
    assert built.model_fields_set == expected.model_fields_set
