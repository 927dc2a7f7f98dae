"""Public schemas of forks."""

from typing import Annotated

from pydantic import Field

from rota.platform.http.schemas import Body, Wire, doc, example_of

_MAX_NUMBER = 2**31 - 1


class ForkTask(Body):
    """Where a fork continues from, and what it does differently."""

    model_config = example_of("fromStep")

    from_step: Annotated[
        int,
        doc(
            "The last step of the task's current run that the fork copies. 0 copies none: the "
            "fork starts with the same input.",
            0,
            ge=0,
            le=_MAX_NUMBER,
        ),
    ]
    agent_version: Annotated[
        Annotated[int, Field(ge=1, le=_MAX_NUMBER)] | None,
        doc(
            "The version of the agent that the fork uses. Default: the version that the task uses.",
            2,
        ),
    ] = None
    model: Annotated[
        Annotated[str, Field(min_length=1, max_length=255)] | None,
        doc(
            "The name of a configured model that the fork uses instead of the agent's. Default: "
            "the task's `model`.",
            "strong",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        doc(
            "True: creates nothing, and returns 200 with a quote: what the fork can cost, which "
            "tools it can use and which approvals it needs.",
            False,
        ),
    ] = False


class ForkOptions(Wire):
    """Whether a task can be forked, and how."""

    available: Annotated[bool, doc("Whether the task can be forked now.", True)]
    reason: Annotated[
        str | None,
        doc(
            "Why it cannot be forked. Null if it can.",
            None,
            "Your client runs this task.",
        ),
    ]
    steps: Annotated[
        list[int],
        doc("The steps of the current run that a fork can continue from, besides 0.", [1]),
    ]
    versions: Annotated[
        list[int],
        doc("The versions of the agent that the tier includes, newest first, at most 100.", [1]),
    ]
    models: Annotated[list[str], doc("The names of the configured models.", ["default"])]


class ForkOptionsResponse(Wire):
    """How a task can be forked."""

    fork: Annotated[ForkOptions, doc("How the task can be forked.")]
