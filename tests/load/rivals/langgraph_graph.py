"""The task of the comparison for `langgraph dev`: a graph with one node, which calls the model.

It runs in an environment of its own. See tests/load/comparison.py.
"""

import os
from typing import TypedDict

import httpx
from langgraph.graph import END, START, StateGraph

http = httpx.AsyncClient(base_url=os.environ["MODEL_URL"], timeout=30)


class State(TypedDict, total=False):
    text: str
    output: str


async def call_model(state: State) -> State:
    body = {"model": "scripted", "messages": [{"role": "user", "content": state["text"]}]}
    answer = (await http.post("/v1/chat/completions", json=body)).raise_for_status()
    return {"output": answer.json()["choices"][0]["message"]["content"]}


graph = (
    StateGraph(State)
    .add_node("call_model", call_model)
    .add_edge(START, "call_model")
    .add_edge("call_model", END)
    .compile()
)
