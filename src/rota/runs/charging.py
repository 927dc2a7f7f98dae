"""What a model call cost, and how its answer is stored together with its charge."""

import asyncio
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import structlog
from prometheus_client import Counter
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.tools import ToolDefinition

from rota.agents.model import AgentVersion
from rota.credits import charges
from rota.credits.model import Charge, RunId
from rota.events import journal
from rota.platform import clock, ids
from rota.platform.db import REJECTED_VALUES, AccountTransaction
from rota.platform.top_accounts import TopAccounts
from rota.runs import model_steps, step_events, steps, token_estimate
from rota.runs.call_protection import finish_despite_cancellation, retry_database
from rota.runs.contracts import CallInput
from rota.runs.model_steps import ModelCallRecord
from rota.runs.models import usage_of
from rota.runs.prices import Price, TokenUsage
from rota.runs.run_context import RunContext, ids_of
from rota.tasks import queries

log = structlog.get_logger()

COST_MICROS = Counter("rota_run_cost_micros_total", "Micro-dollars of model calls.", ["model"])
CALLS = Counter("rota_run_model_calls_total", "Answered model calls.", ["model"])
TOKENS = Counter("rota_run_tokens_total", "Tokens of model calls.", ["model", "kind"])
TOP_COSTS = TopAccounts(
    "rota_top_account_cost_micros_total", "Micro-dollars of the accounts whose runs cost the most."
)
ESTIMATED = Counter(
    "rota_run_estimated_calls_total",
    "Model calls charged by estimated tokens, because the provider reported none.",
    ["model"],
)


async def measure(
    price: Price,
    at: datetime,
    conversation: list[ModelMessage],
    tools: list[ToolDefinition],
    response: ModelResponse,
    input_characters: int,
) -> tuple[TokenUsage, int]:
    """The tokens of a call and its cost. The provider bills the call, so there is always a cost."""
    try:
        usage = await _count_tokens(conversation, tools, response)
        return usage, price.cost_micros(usage, at)
    except Exception as error:
        # Without the message, which can quote the conversation.
        log.error("token_count_failed", error=type(error).__name__)
        usage = token_estimate.by_characters(input_characters, response)
        return usage, price.cost_micros(usage, at)


async def _count_tokens(
    conversation: list[ModelMessage], tools: list[ToolDefinition], response: ModelResponse
) -> TokenUsage:
    usage = usage_of(response)
    if token_estimate.is_complete(usage, response):
        return usage
    # In a thread, because counting takes long. It finishes even if the task is cancelled.
    return await finish_despite_cancellation(
        asyncio.to_thread(token_estimate.complete, usage, conversation, tools, response)
    )


async def charge(
    context: RunContext, call_input: CallInput, agent: AgentVersion, record: ModelCallRecord
) -> bool:
    """Stores and charges the call. Returns whether the stored answer is this one.

    The provider bills the call, so it is charged even if its run has ended or another slice has
    taken the run over.
    """
    account_id, task_id = ids_of(call_input.run)
    run_id = RunId(task_id, call_input.run.run)

    async def store(record: ModelCallRecord) -> bool:
        async with context.db.write(account_id) as tx:
            await journal.lock_account(tx)
            return await store_charged(tx, run_id, call_input.step, agent, record)

    took = clock.now() - record.started_at
    steps.DURATION_SECONDS.labels("model").observe(took.total_seconds())
    storable = record.response is not None
    try:
        is_new = await retry_database(lambda: store(record))
    except REJECTED_VALUES:
        # PostgreSQL cannot store the answer. The call is charged all the same.
        storable = False
        is_new = await retry_database(lambda: store(replace(record, response=None)))
    if is_new:
        _count(record, account_id)
    return is_new and storable


async def store_charged(
    tx: AccountTransaction, run_id: RunId, step: int, agent: AgentVersion, record: ModelCallRecord
) -> bool:
    """Stores and charges the call in one transaction. False if that has already happened."""
    if not await model_steps.record(tx, run_id.task_id, run_id.run, step, record):
        return False
    usage = record.usage
    charge = Charge(
        run_id,
        step,
        agent.name,
        record.model,
        record.price_version,
        cost_micros=record.cost_micros,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        estimated=usage.estimated,
    )
    await step_events.model_call_finished(tx, run_id, step)
    spent_micros = await charges.charge(tx, charge)
    status, run = await queries.add_usage(
        tx,
        run_id.task_id,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_micros=spent_micros,
    )
    # The answer of a failed run stays unapplied: a retry from failure asks the model again.
    if (status, run) == ("CANCELLED", run_id.run):
        await steps.finish_model_call(tx, run_id.task_id, run_id.run, step)
    return True


def _count(record: ModelCallRecord, account_id: UUID) -> None:
    model, usage = record.model, record.usage
    CALLS.labels(model).inc()
    COST_MICROS.labels(model).inc(record.cost_micros)
    TOP_COSTS.add(ids.to_wire("acct", account_id), record.cost_micros)
    TOKENS.labels(model, "cached_input").inc(usage.cache_read_tokens)
    TOKENS.labels(model, "input").inc(usage.input_tokens - usage.cache_read_tokens)
    TOKENS.labels(model, "output").inc(usage.output_tokens)
    if usage.estimated:
        ESTIMATED.labels(model).inc()
