"""The task of the comparison for DBOS: a workflow with one step, which calls the model.

It runs in an environment of its own. See tests/load/comparison.py.
"""

import os
from typing import Any

import httpx
import uvicorn
from dbos import DBOS, DBOSConfig
from fastapi import FastAPI

http = httpx.AsyncClient(base_url=os.environ["MODEL_URL"], timeout=30)
# Without telemetry, like the bare handlers of the other benchmarks.
app = FastAPI(
    telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False}
)


@DBOS.step()
async def call_model(text: str) -> str:
    body = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
    answer = (await http.post("/v1/chat/completions", json=body)).raise_for_status()
    return answer.json()["choices"][0]["message"]["content"]


@DBOS.workflow()
async def run(text: str) -> str:
    return await call_model(text)


@app.get("/ok")
async def ok() -> dict[str, bool]:
    return {"ok": True}


@app.post("/runs")
async def create(body: dict[str, Any]) -> dict[str, str]:
    return {"output": await run(body["text"])}


if __name__ == "__main__":
    config: DBOSConfig = {
        "name": "comparison",
        "system_database_url": os.environ["DATABASE_URL"],
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), access_log=False)
