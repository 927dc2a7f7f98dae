"""Tokens that Rota counts itself, against the counts of independent tokenizers."""

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from rota.platform import clock
from rota.runs import token_estimate
from rota.runs.charging import measure
from rota.runs.prices import TokenUsage, fixed_price
from rota.runs.token_estimate import complete, count, input_tokens, is_complete

PROSE = """\
Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived
in Liberty, and dedicated to the proposition that all men are created equal.

Now we are engaged in a great civil war, testing whether that nation, or any nation so conceived and
so dedicated, can long endure. We are met on a great battle-field of that war. We have come to
dedicate a portion of that field, as a final resting place for those who here gave their lives that
that nation might live. It is altogether fitting and proper that we should do this.
"""

CODE = '''\
def bisect_left(a, x, lo=0, hi=None, *, key=None):
    """Return the index where to insert item x in list a, assuming a is sorted."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if (a[mid] if key is None else key(a[mid])) < x:
            lo = mid + 1
        else:
            hi = mid
    return lo
'''

JSON = """\
{"invoice": {"id": "in_8f3c21d0", "customer": {"name": "Ada Byron", "email": "ada@example.com"},
 "lines": [{"sku": "A-1001", "quantity": 3, "unitPrice": 19.99, "taxable": true},
           {"sku": "B-2040", "quantity": 1, "unitPrice": 249.0, "taxable": false}],
 "issuedAt": "2026-03-14T09:26:53Z", "notes": null, "tags": ["priority", "net-30"]}}
"""

# For GPT-4o and later, and for GPT-4. Counted by OpenAI's published vocabularies in another
# implementation, https://github.com/github/rust-gems.
COUNTS = {PROSE: (120, 120), CODE: (124, 123), JSON: (135, 135)}


def close(counted: int, real: int) -> bool:
    return abs(counted - real) <= real * 0.1


@pytest.mark.parametrize("text", COUNTS)
@pytest.mark.parametrize("times", [1, 3, 200])
def test_prose_code_and_json_are_counted_within_a_tenth(text: str, times: int) -> None:
    newer, older = COUNTS[text]
    # Every sample ends with a line break, so its tokens do not change when it is repeated.
    assert close(count(text * times), newer * times)
    assert close(count(text * times), older * times)
    if times == 1:
        assert count(text) == newer


@pytest.mark.parametrize(
    ("text", "tokens"),
    # From OpenAI's cookbook on counting tokens.
    [("tiktoken is great!", 6), ("antidisestablishmentarianism", 6), ("お誕生日おめでとう", 8)],
)
def test_published_counts_are_met_exactly(text: str, tokens: int) -> None:
    assert count(text) == tokens


def test_a_chat_costs_what_openai_reports_for_it() -> None:
    system = [
        "You are a helpful, pattern-following assistant that translates corporate jargon into "
        "plain English.",
        "New synergies will help drive top-line growth.",
        "Things working well together will increase revenue.",
        "Let's circle back when we have more bandwidth to touch base on opportunities for "
        "increased leverage.",
        "Let's talk later when we're less busy about how to do better.",
    ]
    question = (
        "This late pivot means we don't have time to boil the ocean for the client deliverable."
    )
    chat: list[ModelMessage] = [
        ModelRequest(parts=[*map(SystemPromptPart, system), UserPromptPart(question)])
    ]
    # The API counted 124 for gpt-4o, of which the names of four speakers are 12.
    assert close(input_tokens(chat, []), 124 - 12)


def test_only_what_the_provider_did_not_report_is_counted() -> None:
    asked: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(PROSE)])]
    answer = ModelResponse(parts=[TextPart(CODE)])
    reported = TokenUsage(1_000, 500)
    assert is_complete(reported, answer)
    assert complete(reported, asked, [], answer) == reported
    assert not is_complete(TokenUsage(1_000, 0), answer)
    assert complete(TokenUsage(1_000, 0), asked, [], answer) == TokenUsage(
        1_000, 124, estimated=True
    )
    both = complete(TokenUsage(0, 0), asked, [], answer)
    assert close(both.input_tokens, 120)
    assert (both.output_tokens, both.estimated) == (124, True)
    # An empty answer has no tokens.
    assert is_complete(TokenUsage(1_000, 0), ModelResponse(parts=[]))


def test_tools_and_their_calls_are_counted() -> None:
    called = ModelResponse(parts=[ToolCallPart("save", {"text": PROSE}), TextPart("Saved.")])
    assert complete(TokenUsage(9, 0), [], [], called).output_tokens > 120
    tool = ToolDefinition(name="save", description=PROSE, parameters_json_schema={"title": JSON})
    assert input_tokens([called], [tool]) > 120 + 120 + 135


async def test_a_call_is_charged_although_its_tokens_cannot_be_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(token_estimate, "_VOCABULARY", tmp_path / "missing")
    token_estimate._load.cache_clear()
    asked: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(PROSE)])]
    answer = ModelResponse(parts=[TextPart("a" * 300), ToolCallPart("save", {"text": "\ud800"})])
    price = fixed_price("test", input_usd=Decimal(1), output_usd=Decimal(2))
    usage, cost_micros = await measure(price, clock.now(), asked, [], answer, 3_000)
    assert (usage.input_tokens, usage.estimated) == (1_001, True)
    assert 100 < usage.output_tokens < 120
    assert cost_micros == 1_001 + 2 * usage.output_tokens


def test_text_without_spaces_is_counted_quickly() -> None:
    # As one word, this would take minutes.
    assert count("ab" * 500_000) > 100_000
