"""Joined pieces of a stream mean what the pieces mean, for the libraries that read them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import ModelRequestParameters

from rota.platform.model_choice import ModelChoice
from rota.runs import model_clients, stream_merging
from rota.runs.stream_merging import MergedStream, Merger, merge_pieces

Delta = dict[str, Any]


def event(data: Any, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(data)}{end}".encode()


def chunk(delta: Delta, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None} | more.pop("choice", {})
    return {"id": "c", "created": 1, "model": "m", "choices": [choice]} | more


def tool(arguments: str, **call: Any) -> Delta:
    return {"tool_calls": [{"index": 0, "function": {"arguments": arguments}} | call]}


def block(kind: str, key: str, text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: text}}


def named(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\n".encode() + event(data)


def deltas(merged: bytes) -> list[Delta]:
    events = [json.loads(line[5:]) for line in merged.splitlines() if line.startswith(b"data:")]
    return [each["choices"][0]["delta"] for each in events]


def test_pieces_that_differ_only_in_their_text_are_joined() -> None:
    sent = [event(chunk({"content": text}, obfuscation=text * 3)) for text in ("a", "b", "ü 🜁")]
    assert deltas(Merger().merge(b"".join(sent))) == [{"content": "abü 🜁"}]
    sent = [event(chunk(tool(text))) for text in ('{"a', '": 1', "}")]
    assert deltas(Merger().merge(b"".join(sent))) == [tool('{"a": 1}')]
    merged = Merger().merge(b"".join(named(block("text_delta", "text", text)) for text in "abc"))
    assert merged.startswith(b"event: content_block_delta\ndata:")
    assert json.loads(merged.splitlines()[1][5:]) == block("text_delta", "text", "abc")


A = chunk({"content": "a"})
ALONE: dict[str, dict[str, Any]] = {
    "another field": chunk({"reasoning_content": "b"}),
    "two texts": chunk({"content": "b", "reasoning": "b"}),
    "a refusal": chunk({"content": "b", "refusal": "No."}),
    "annotations": chunk({"content": "b", "annotations": [{"type": "url_citation"}]}),
    "probabilities": chunk({"content": "b"}, choice={"logprobs": {"content": [{"token": "b"}]}}),
    "another choice": chunk({"content": "b"}, choice={"index": 1}),
    "two choices": chunk({"content": "b"}) | {"choices": [*A["choices"], *A["choices"]]},
    "the end": chunk({"content": "b"}, choice={"finish_reason": "stop"}),
    "a tag": chunk({"content": "<think>"}),
    "the end of a tag": chunk({"content": "k>"}),
    "a list of texts": chunk({"content": [{"type": "text", "text": "b"}]}),
    "a new call": chunk(tool("{}", id="call-2")),
    "the name of a call": chunk(tool("", function={"name": "t", "arguments": "{"})),
    "nothing": chunk({}),
    "an error": {"error": {"message": "No."}},
    "no chunk": {"choices": None},
}


@pytest.mark.parametrize("other", ALONE.values(), ids=ALONE)
def test_everything_else_is_passed_on_as_it_is(other: dict[str, Any]) -> None:
    for sent in ([A, other], [other, A], [A, other, A]):
        raw = b"".join(map(event, sent))
        assert Merger().merge(raw) == raw


def test_the_usage_so_far_is_that_of_the_last_piece() -> None:
    sent = [event(chunk({"content": "a"}, usage={"total_tokens": n})) for n in (1, 2)]
    [merged] = Merger().merge(b"".join(sent)).splitlines()[::2]
    assert json.loads(merged[5:])["usage"] == {"total_tokens": 2}
    # If a later piece has none, nothing is lost.
    raw = b"".join([*sent[:1], event(chunk({"content": "b"}))])
    assert Merger().merge(raw) == raw


RAW = {
    "a comment": b": keep-alive\n\n",
    "no JSON": b"data: [DONE]\n\n",
    "broken JSON": b'data: {"choices": [\n\n',
    "half of a character": b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n',
    "two lines": b"data: {}\ndata: {}\n\n",
    "an ID": b"id: 1\ndata: {}\n\n",
    "no object": b"data: 5\n\n",
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
def test_what_is_no_piece_stays_byte_for_byte(raw: bytes) -> None:
    assert Merger().merge(event(A) + raw + raw + event(A)) == event(A) + raw + raw + event(A)


def test_an_event_can_arrive_in_any_parts() -> None:
    raw = b"".join(event(chunk({"content": text}), end="\r\n\r\n") for text in ("a", "ü", "b"))
    for size in range(1, 9):
        merger = Merger()
        parts = [merger.merge(raw[at : at + size]) for at in range(0, len(raw), size)]
        merged = b"".join(parts) + merger.rest()
        assert "".join(delta["content"] for delta in deltas(merged)) == "aüb"
    # What never becomes an event is passed on in the end.
    merger = Merger()
    assert merger.merge(b"data: {") + merger.rest() == b"data: {"


def test_a_long_event_is_passed_on_while_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_merging, "MAX_EVENT_BYTES", 100)
    raw = event(A) + event(chunk({"content": "x" * 500})) + event(A) * 3
    for size in (1, 7, 60, 199, 1_000):
        merger = Merger()
        parts = [merger.merge(raw[at : at + size]) for at in range(0, len(raw), size)]
        merged = b"".join(parts) + merger.rest()
        texts = [delta["content"] for delta in deltas(merged)]
        assert "".join(texts) == "a" + "x" * 500 + "aaa"
        assert max(map(len, parts)) <= max(
            size, len(raw) if size == 1_000 else 100 + 2 * size + 500
        )
    # Nothing is kept of an event that never ends.
    merger = Merger()
    assert b"".join(merger.merge(b"data: " + b"x" * 60) for _ in range(9)) + merger.rest()
    assert merger.rest() == b""


# The same answer, whatever is joined.

TEXTS = st.one_of(
    st.sampled_from(["", " ", "\n\n", "<think>", "</think>", "<", "word ", "ü🜁"]),
    st.text(max_size=4),
)
CHUNKS = st.lists(
    st.one_of(
        TEXTS.map(lambda text: chunk({"content": text})),
        TEXTS.map(lambda text: chunk({"role": "assistant", "content": text, "tool_calls": None})),
        TEXTS.map(lambda text: chunk({"reasoning_content": text})),
        TEXTS.map(
            lambda text: chunk(
                {"content": "", "reasoning": text},
                usage={
                    "prompt_tokens": 1,
                    "completion_tokens": len(text),
                    "total_tokens": len(text) + 1,
                },
            )
        ),
        st.tuples(st.integers(0, 1), TEXTS).map(
            lambda call: chunk(
                {"tool_calls": [{"index": call[0], "function": {"arguments": call[1]}}]}
            )
        ),
        st.integers(0, 1).map(
            lambda index: chunk(
                {
                    "tool_calls": [
                        {
                            "index": index,
                            "id": f"call-{index}",
                            "type": "function",
                            "function": {"name": "t", "arguments": ""},
                        }
                    ]
                }
            )
        ),
    ),
    max_size=14,
)


class Provider(httpx2.AsyncByteStream):
    def __init__(self, parts: Iterable[bytes], *, error: Exception | None = None) -> None:
        self.parts, self.error, self.closed = list(parts), error, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part
        if self.error is not None:
            raise self.error

    async def aclose(self) -> None:
        self.closed = True


async def answer(raw: bytes, *, merged: bool, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the library makes of a stream, or the type of its error."""
    choice = ModelChoice.model_validate({"model": "m", "apiKey": "k", "baseUrl": "http://m.test"})
    stream = Provider([raw])

    async def send(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)

    monkeypatch.setattr(model_clients, "_HOOKS", {"response": [merge_pieces] if merged else []})
    client = model_clients.create(choice)
    client.client._client._transport = httpx2.MockTransport(send)  # type: ignore[attr-defined]
    question: list[ModelMessage] = [ModelRequest([UserPromptPart("Hello?")])]
    try:
        async with client.request_stream(question, {}, ModelRequestParameters()) as found:
            async for _ in found:
                pass
        response: ModelResponse = found.get()
    except Exception as error:
        return type(error)
    assert stream.closed
    return response.parts, response.usage, response.finish_reason, response.provider_details


@settings(max_examples=60, deadline=None)
@given(chunks=CHUNKS)
def test_the_answer_is_the_same(chunks: list[dict[str, Any]]) -> None:
    end = [event(chunk({}, choice={"finish_reason": "stop"})), b"data: [DONE]\n\n"]
    raw = b"".join([*map(event, chunks), *end])
    with pytest.MonkeyPatch.context() as patch:

        async def both() -> None:
            joined = await answer(raw, merged=True, monkeypatch=patch)
            assert joined == await answer(raw, merged=False, monkeypatch=patch)

        asyncio.run(both())


# The stream.


async def read(stream: MergedStream) -> bytes:
    return b"".join([part async for part in stream])


async def test_the_first_piece_and_the_end_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_merging, "PAUSE_S", 60)
    go_on = asyncio.Event()

    class Slow(Provider):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield event(A)
            await go_on.wait()
            for _ in range(3):
                yield event(A)

    parts = aiter(MergedStream(Slow([])))
    async with asyncio.timeout(10):
        assert await anext(parts) == event(A)
        go_on.set()
        assert deltas(await anext(parts)) == [{"content": "aaa"}]
        with pytest.raises(StopAsyncIteration):
            await anext(parts)


async def test_an_error_comes_after_what_arrived_before_it() -> None:
    stream = MergedStream(Provider([event(A), event(A)], error=httpx2.ReadError("broken")))
    parts = aiter(stream)
    found = await anext(parts)
    with pytest.raises(httpx2.ReadError):
        await anext(parts)
    assert "".join(delta["content"] for delta in deltas(found)) == "aa"


async def test_the_rest_can_be_read_in_a_second_loop() -> None:
    stream = MergedStream(Provider([event(A), b"data: [DONE]\n\n", b": bye\n\n"]))
    async for part in stream:
        found = part
        break
    assert found + await read(stream) == event(A) + b"data: [DONE]\n\n: bye\n\n"


async def test_a_closed_stream_is_no_longer_read() -> None:
    class Endless(Provider):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                self.parts.append(b"")
                yield event(A)
                await asyncio.sleep(0)

    provider = Endless([])
    stream = MergedStream(provider)
    assert await anext(aiter(stream)) == event(A)
    await stream.aclose()
    assert provider.closed
    read_before = len(provider.parts)
    await asyncio.sleep(0.01)
    assert len(provider.parts) == read_before


async def test_a_stream_that_somebody_else_closes_cancels_nobody() -> None:
    class Silent(Provider):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield event(A)
            await asyncio.Event().wait()

    stream = MergedStream(Silent([]))
    parts = aiter(stream)
    await anext(parts)
    reading = asyncio.ensure_future(anext(parts))
    await asyncio.sleep(0)
    await stream.aclose()
    with pytest.raises(httpx2.StreamClosed):
        await reading


async def test_what_nobody_takes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_merging, "MAX_BUFFERED_BYTES", 1_000)
    provider = Provider([event(A)] * 100)
    taken: list[bytes] = []

    class Counted(Provider):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in provider:
                taken.append(part)
                yield part

    stream = MergedStream(Counted([]))
    parts = aiter(stream)
    first = await anext(parts)
    await asyncio.sleep(0.05)
    assert len(b"".join(taken)) < 3_000
    whole = first + b"".join([part async for part in parts])
    assert "".join(delta["content"] for delta in deltas(whole)) == "a" * 100


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json"},
        {"content-type": "text/event-stream", "content-encoding": "gzip"},
    ],
)
async def test_other_responses_stay_as_they_are(headers: dict[str, str]) -> None:
    response = httpx2.Response(200, headers=headers, stream=Provider([]))
    await merge_pieces(response)
    assert isinstance(response.stream, Provider)
