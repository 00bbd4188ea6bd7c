"""See what a monitor would read of an app, and what it would miss: the first step before an app is scored live."""

import asyncio
from typing import Any

from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from with_llama_index.app import QUESTIONS, Reader, index
from words import judge

from ragstone import Monitor, ResponseRelevancy
from ragstone.live import CallableSink, Record
from ragstone_llama_index import apreview, instrument, uninstrument

engine = index().as_query_engine(llm=Reader(), similarity_top_k=1)


class Guide(Workflow):
    """Answers a visitor, with entries that no usual name says anything of."""

    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        """Ask the engine."""
        response = await engine.aquery(event.get("wish"))
        return StopEvent(result={"for_the_visitor": str(response), "language": "en"})


async def main() -> None:
    """Preview the app, and put it on a monitor with what the preview found."""
    asked: dict[str, Any] = {"wish": QUESTIONS[0]}
    seen = await apreview(Guide(), asked)

    llm, embedder = judge()
    records: list[Record] = []  # in place of a database
    metric = ResponseRelevancy(llm=llm, embedder=embedder)
    with Monitor(metric, sinks=CallableSink(records.extend)) as monitor:
        instrument(monitor, fields=seen.fields)
        await Guide().run(**asked)
        uninstrument(monitor)
    print(f"\n{monitor.stats()}")


if __name__ == "__main__":
    asyncio.run(main())
