"""What a model call can cost at most, and how long an answer the budget allows."""

from rota.runs.models import GiveUp, Price

# An answer shorter than this is not worth asking for.
LEAST_OUTPUT_TOKENS = 64
# A cautious guess: text has at least three characters to a token.
CHARACTERS_PER_TOKEN = 3


def most_micros(price: Price, input_characters: int, output_tokens: int) -> int:
    """What a call costs at most, as far as can be known before it is made."""
    return price.cost_micros(input_characters // CHARACTERS_PER_TOKEN + 1, output_tokens)


def affordable_output_tokens(left: int, price: Price, input_characters: int, most: int) -> int:
    """How long an answer may be, at most `most`, so that the call cannot cost more than is left."""
    if price.output_micros == 0 and price.input_micros == 0:
        return most
    for_input = most_micros(price, input_characters, 0)
    tokens = (left - for_input) * 1_000_000 // max(1, price.output_micros)
    if tokens < LEAST_OUTPUT_TOKENS:
        raise GiveUp(
            "BUDGET_EXCEEDED",
            "The next model call could cost more than is left of the budget. Retried from "
            "failure, the task goes on with a new one.",
            retryable=True,
        )
    return min(tokens, most)
