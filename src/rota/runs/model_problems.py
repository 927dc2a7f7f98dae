"""What is wrong with the models in the settings, without calling them."""

import os
from collections.abc import Iterator, Mapping

from rota.platform.model_choice import ModelChoice
from rota.runs import model_clients
from rota.runs.model_errors import ModelWithoutPrice
from rota.runs.models import price_of

# The variables that the clients of the providers read when `apiKey` is not set.
_KEY_VARIABLES = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}


def problems(choices: Mapping[str, ModelChoice]) -> dict[str, str]:
    """Why each model that cannot be used cannot, and what to do."""
    found: dict[str, str] = {}
    for name, choice in choices.items():
        for each in (choice, *choice.fallbacks):
            if problem := next(_problems_of(each), None):
                found[name] = problem
                break
    return found


def _problems_of(choice: ModelChoice) -> Iterator[str]:
    if choice.api_key is None and choice.base_url is None:
        variables = _KEY_VARIABLES.get(choice.provider, ())
        if not any(os.environ.get(variable) for variable in variables):
            yield f"the provider {choice.provider} needs a key. Set apiKey for {choice.model!r}."
    try:
        price_of(choice)
    except ModelWithoutPrice:
        yield (
            f"the price of the model {choice.model!r} is unknown. Set inputUsdPerMillion and "
            "outputUsdPerMillion, or free: true."
        )
    try:
        model_clients.create(choice)
    except ImportError:
        yield (
            f"the provider {choice.provider} needs a package: pip install 'rota[{choice.provider}]'"
        )
    except Exception as error:
        yield f"its client cannot be created ({type(error).__name__}: {error})."
