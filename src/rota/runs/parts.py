"""The parts of a worker that carry runs forward."""

from dataclasses import dataclass

from rota.runs.agent_loop import AgentLoop
from rota.runs.model_call import ModelCaller
from rota.runs.run_context import RunContext
from rota.runs.tool_call import ToolCaller


@dataclass(frozen=True, slots=True)
class RunParts:
    context: RunContext
    loop: AgentLoop
    model_caller: ModelCaller
    tool_caller: ToolCaller
