"""A FastAPI app over a LangChain chain, monitored: `uvicorn live.fastapi_app:app`."""

import os
from typing import Literal
from uuid import uuid4

from fastapi import FastAPI
from langchain_core.runnables import RunnableConfig
from live.chain import chain
from live.monitoring import make_monitor
from pydantic import BaseModel

from ragstone_langchain import MonitorHandler

monitor = make_monitor(os.environ.get("DATABASE", "fastapi.db"))
handler = MonitorHandler(monitor)
app = FastAPI(lifespan=monitor.lifespan)  # at the app's end, the monitor scores what waits


class Answer(BaseModel):
    """What the app answers; its id is the sample's."""

    id: str
    answer: str


@app.get("/ask")
async def ask(q: str) -> Answer:
    """Answer a question."""
    run = uuid4()
    config = RunnableConfig(callbacks=[handler], run_id=run)
    return Answer(id=str(run), answer=await chain.ainvoke({"question": q}, config))


@app.post("/feedback/{sample_id}")
async def feedback(sample_id: str, thumb: Literal["up", "down"]) -> None:
    """Keep what a user says of an answer."""
    monitor.feedback(sample_id, thumb)
