"""A model call: from the conversation so far to the stored and charged answer."""

from typing import Any

import structlog
from pydantic_ai.messages import ModelResponse
from temporalio import activity

from rota.credits import holds
from rota.credits.allowance import AllowanceOf
from rota.events.live_text import LiveTexts, Version
from rota.platform import clock
from rota.platform.db import AccountReader
from rota.platform.schema import SchemaChecks
from rota.runs import charging, model_request, model_steps, steps, transcript
from rota.runs.agent_loop import AgentLoop, Start
from rota.runs.backoff import MODEL_ATTEMPTS, Turns
from rota.runs.bounds import Bounds, TimeLimitReached, check_deadline
from rota.runs.call_budget import CallBudgets, ModelCallInput, ParentBusy
from rota.runs.call_protection import finish_despite_cancellation, retry_database
from rota.runs.contracts import CallInput, NextStep
from rota.runs.model_errors import BudgetExceeded, ContextTooLong, TryAgain
from rota.runs.model_request import Conversation, ModelCallRequest, Requests
from rota.runs.model_steps import ModelCallRecord
from rota.runs.models import ModelChain, Models, PricedModel
from rota.runs.output_formats import OutputFormats, SchemaRefused
from rota.runs.run_context import (
    FencedOut,
    History,
    RunContext,
    cancelled_parents,
    check_fence,
    has_worked_longer_than,
    ids_of,
)
from rota.runs.steps import Step
from rota.runs.stored_answers import Stored, StoredAnswers
from rota.runs.tools import AccountBusy, Tool, Toolbox
from rota.tasks import queries
from rota.tasks.model import Task

log = structlog.get_logger()


class ModelCaller:
    def __init__(
        self,
        context: RunContext,
        models: Models,
        toolbox: Toolbox,
        checks: SchemaChecks,
        loop: AgentLoop,
        bounds: Bounds,
        live_texts: LiveTexts,
        allowance_of: AllowanceOf,
    ) -> None:
        self._context = context
        self._models = models
        self._toolbox = toolbox
        self._answers = StoredAnswers(context, checks, loop)
        self._bounds = bounds
        self._live_texts = live_texts
        self._formats = OutputFormats()
        self._budgets = CallBudgets(context, allowance_of)
        self._turns = Turns()

    async def call(
        self,
        call_input: CallInput,
        *,
        start: ModelCallInput | None = None,
        history: History | None = None,
        start_calls: Start | None = None,
    ) -> NextStep | None:
        """Makes the call. None if the run has moved on and the call is no longer needed.

        `start` is what this slice has already read with `prepare`.
        """
        history = history or History()
        if start is None:
            start = await retry_database(lambda: self._read_input(call_input, history))
        if start is None:
            return None
        if not start.answered:
            check_deadline(start.task)
            self._bounds.check(start.rows, start.agent.max_steps, out_of_time=start.out_of_time)
        account_id, agent = start.account_id, start.agent
        box = await retry_database(lambda: self._toolbox.open(account_id, agent))
        tools = {name: tool for name, (tool, _) in box.items() if tool.offered}
        stored = None
        if not start.answered:
            try:
                record = await self._request(call_input, start, tools, history)
            except ParentBusy:
                return NextStep("wait")
            if await charging.charge(self._context, call_input, start.agent, record):
                stored = Stored(record.kind, record.response)
        return await self._answers.apply(
            call_input, start.agent, start.task.output_schema, tools, stored, start_calls
        )

    async def _read_input(self, call_input: CallInput, history: History) -> ModelCallInput | None:
        account_id, task_id = ids_of(call_input.run)
        async with self._context.db.read(account_id) as tx:
            task = await queries.find(tx, task_id)
            check_fence(call_input.run, task)
            if task is None or task.run != call_input.run.run or task.status != "RUNNING":
                return None
            if await cancelled_parents(tx, [task]):
                return None  # The task will be cancelled too, so nothing is asked and charged.
            return await self.prepare(tx, task, call_input.step, history)

    async def prepare(
        self,
        tx: AccountReader,
        task: Task,
        step: int,
        history: History,
        newer: list[Step] | None = None,
    ) -> ModelCallInput | None:
        """Reads what the model call of this step needs. None if the call is finished.

        `newer` are the calls that are not in the history, if they are known.
        """
        if newer is None:
            newer = await steps.of_run(tx, task.id, task.run, first_step=history.next_step)
        rows = history.rows + newer
        history.settle(rows, step)
        found = next((row for row in newer if row.step == step), None)
        if found is not None and found.state == "finished":
            return None
        return ModelCallInput(
            account_id=tx.account_id,
            task=task,
            agent=await self._context.agent(tx, task),
            rows=rows,
            left_micros=await holds.left(tx, task.run_id),
            out_of_time=await has_worked_longer_than(tx, task, self._bounds.max_time),
            answered=found is not None and found.is_answered,
            attempts=found.attempts if found else 0,
        )

    async def count_failure(self, call_input: CallInput) -> tuple[int, ModelChain]:
        """Counts a failed attempt of the call. Returns how many have failed, and its models."""
        async with self._context.locked(call_input.run) as (tx, task):
            assert task is not None
            agent = await self._context.agent(tx, task)
            failed = await model_steps.count_failure(
                tx, task.id, task.run, call_input.step, agent.model
            )
            return failed, self._models.chain(agent.model)

    async def turn_in_s(self, call_input: CallInput, busy: AccountBusy) -> float:
        """How long a run pauses whose answer waits for its account's turn."""
        account_id, task_id = ids_of(call_input.run)
        async with self._context.db.read(account_id) as tx:
            task = await queries.find(tx, task_id)
            row = await steps.one(tx, task_id, call_input.run.run, call_input.step, 0)
            if task is None or row is None:
                raise FencedOut
            if await has_worked_longer_than(tx, task, self._bounds.max_time):
                raise TimeLimitReached(self._bounds.max_time)
        since = max(at for at in (task.updated_at, row.planned_at, row.finished_at) if at)
        waited_s = (clock.now() - since).total_seconds()
        return self._turns.pause_s(account_id, waited_s, busy.retry_after_s)

    async def _request(
        self,
        call_input: CallInput,
        start: ModelCallInput,
        tools: dict[str, Tool],
        history: History,
    ) -> ModelCallRecord:
        """Asks a model of the chain.

        A refused request is changed and sent again, which does not count as a failed attempt.
        """
        chain = self._models.chain(start.agent.model)
        too_expensive: list[PricedModel] = []
        conversation = Conversation(start.agent, start.task, start.rows, call_input.step, tools)
        requests = Requests(self._formats, conversation)
        while True:
            if history.lost:
                raise FencedOut
            chosen = chain.choose(start.attempts, too_expensive)
            request = requests.next(chosen)
            started_at = clock.now()
            try:
                tokens = await self._budgets.answer_tokens(start, chosen, request, started_at)
            except BudgetExceeded:
                if chain.is_first(chosen):
                    raise
                too_expensive.append(chosen)
                backoff_s = MODEL_ATTEMPTS.backoff_s(start.attempts, len(chain))
                if chain.pause_s(backoff_s, too_expensive) > 0:
                    failure = TryAgain("The models that are available are too expensive.")
                    failure.without = too_expensive
                    raise failure from None
                continue
            try:
                return await self._ask(call_input, start, chain, chosen, request, tokens)
            except SchemaRefused:
                continue
            except ContextTooLong:
                if not requests.can_shorten(request):
                    raise

    async def _ask(
        self,
        call_input: CallInput,
        start: ModelCallInput,
        chain: ModelChain,
        chosen: PricedModel,
        request: ModelCallRequest,
        max_tokens: int,
    ) -> ModelCallRecord:
        run = call_input.run
        version = Version(run.run, run.fence or 0, call_input.step, start.attempts)
        live_text = self._live_texts.begin(start.task.id, version)
        sending = model_request.send(
            chosen,
            self._formats,
            request,
            max_tokens,
            lambda text: live_text.add(transcript.storable(text)),
            # Slices count attempts in the step. Runs of earlier versions let Temporal count.
            attempt=max(start.attempts // len(chain) + 1, activity.info().attempt),
        )
        try:
            answer = await finish_despite_cancellation(sending)
        except BaseException as error:
            live_text.discard()
            if isinstance(error, TryAgain):
                chain.failed(chosen, error.after, avoided=error.is_outage)
            raise
        live_text.end()
        return ModelCallRecord(
            model=chosen.name,
            response=_storable(answer.response),
            usage=answer.usage,
            cost_micros=answer.cost_micros,
            price_version=chosen.price.version,
            started_at=answer.started_at,
            kind=request.kind,
            arguments=_arguments(request.facts(chosen.window, answer.usage), chain.before(chosen)),
        )


def _arguments(facts: dict[str, Any], instead_of: list[str]) -> dict[str, Any] | None:
    """What the timeline says about the call besides its answer."""
    found = facts | ({"insteadOf": instead_of} if instead_of else {})
    return found or None


def _storable(response: ModelResponse) -> Any:
    """The response as a step stores it. None if that is impossible."""
    try:
        return transcript.dump_response(response)
    except Exception as error:
        log.error("model_answer_not_storable", error=type(error).__name__)
        return None
