"""One sample, one scripted judge: the same number, verdicts and usage through core, every form and every model."""

import asyncio
import uuid
from datetime import datetime, timezone

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langsmith import Client, aevaluate, evaluate
from langsmith.schemas import Example, Run

from ragstone_langchain import RagEvaluator
from ragstone_langchain.classic import RagStringEvaluator

from ..core.judges import metrics, truth  # noqa: TID252
from .scripted import NO_TOKENS, WRAPPERS, Script, Told
from .test_models import SAMPLE, counted

INPUTS = {"question": SAMPLE.user_input}
DOCUMENTS = [Document(text) for text in SAMPLE.retrieved_contexts]
OUTPUTS = {"answer": SAMPLE.response, "context": DOCUMENTS}


def strings(result):
    return {"score": result["score"], "comment": result["reasoning"], "metadata": result["metadata"]}


def run_of(outputs) -> Run:
    now = datetime.now(timezone.utc)
    return Run(
        id=uuid.uuid4(), name="app", run_type="chain", start_time=now, end_time=now, inputs=INPUTS, outputs=outputs
    )


def offline() -> dict:
    return {
        "data": [Example(id=uuid.uuid4(), inputs=INPUTS)],
        "upload_results": False,
        "client": Client(api_key="none", auto_batch_tracing=False, tracing_sampling_rate=0),
    }


def in_evaluate(evaluator):
    (row,) = evaluate(lambda inputs: OUTPUTS, evaluators=[evaluator], **offline())
    return row["evaluation_results"]["results"][0].model_dump()


def in_aevaluate(evaluator):
    async def target(inputs):
        return OUTPUTS

    async def run():
        return [row async for row in await aevaluate(target, evaluators=[evaluator.acall], **offline())]

    (row,) = asyncio.run(run())
    return row["evaluation_results"]["results"][0].model_dump()


FORMS = {
    "call": lambda ev: ev(inputs=INPUTS, outputs=OUTPUTS),
    "call with texts": lambda ev: ev(
        inputs=SAMPLE.user_input, outputs=SAMPLE.response, context=list(SAMPLE.retrieved_contexts)
    ),
    "call with messages": lambda ev: ev(
        inputs=[HumanMessage(SAMPLE.user_input)], outputs=AIMessage(SAMPLE.response), context=DOCUMENTS
    ),
    "acall": lambda ev: asyncio.run(ev.acall(inputs=INPUTS, outputs=OUTPUTS)),
    "run": lambda ev: ev.as_run_evaluator().evaluate_run(run_of(OUTPUTS)).model_dump(),
    "arun": lambda ev: asyncio.run(ev.as_run_evaluator().aevaluate_run(run_of(OUTPUTS))).model_dump(),
    "runnable": lambda ev: ev.as_runnable().invoke({**INPUTS, **OUTPUTS}),
    "runnable with keywords": lambda ev: ev.as_runnable().invoke({"inputs": INPUTS, "outputs": OUTPUTS}),
    "runnable async": lambda ev: asyncio.run(ev.as_runnable().ainvoke({**INPUTS, **OUTPUTS})),
    "runnable batch": lambda ev: ev.as_runnable().batch([{**INPUTS, **OUTPUTS}])[0],
    "strings": lambda ev: strings(
        ev.evaluate_strings(prediction=SAMPLE.response, input=SAMPLE.user_input, contexts=DOCUMENTS)
    ),
    "strings async": lambda ev: strings(
        asyncio.run(ev.aevaluate_strings(prediction=SAMPLE.response, input=SAMPLE.user_input, contexts=DOCUMENTS))
    ),
    "langsmith.evaluate": in_evaluate,
    "langsmith.aevaluate": in_aevaluate,
}


def check(result, outcome, *, tokens: bool = True) -> None:
    said = outcome.model_dump(mode="json")
    metadata = result["metadata"]
    assert result["score"] == outcome.value
    assert result["comment"] == outcome.reason
    assert metadata["verdicts"] == said["verdicts"]
    assert metadata["breakdown"] == said["breakdown"]
    assert metadata["version"] == outcome.version
    names = ["llm_calls", "embed_calls", *(["input_tokens", "output_tokens"] if tokens else [])]
    assert [metadata["usage"][name] for name in names] == [said["usage"][name] for name in names]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@pytest.mark.filterwarnings("ignore:'upload_results' parameter is in beta")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("index", range(8))
def test_every_form(index: int, form: str) -> None:
    core = metrics(counted)[index]
    check(FORMS[form](RagEvaluator(metrics(counted)[index])), core.score(SAMPLE))


@pytest.mark.filterwarnings("ignore:This chain was only tested")
@pytest.mark.filterwarnings("ignore:Ignoring (input|reference)")
@pytest.mark.parametrize("index", range(8))
def test_the_classic_form(index: int) -> None:
    outcome = metrics(counted)[index].score(SAMPLE)
    evaluator = RagStringEvaluator(RagEvaluator(metrics(counted)[index]))
    given = {"prediction": SAMPLE.response, "input": SAMPLE.user_input, "contexts": DOCUMENTS}
    check(strings(evaluator.evaluate_strings(**given)), outcome)
    check(strings(asyncio.run(evaluator.aevaluate_strings(**given))), outcome)


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("form", ["call", "acall", "runnable", "runnable async"])
@pytest.mark.parametrize("kind", WRAPPERS)
def test_every_model_in_every_way_to_call_it(kind: str, form: str, asking: str) -> None:
    for core in metrics(counted, asking)[2::3]:
        script = Script(truth)
        through = type(core)(**{**vars(core), "llm": Told(WRAPPERS[kind](script), script, asking=asking)})
        check(FORMS[form](RagEvaluator(through)), core.score(SAMPLE), tokens=kind not in NO_TOKENS)
