"""LangChain's decision models: as judges, and in an app that a monitor watches."""

import asyncio
import pickle

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ragstone import DecisionRequest, Faithfulness, Monitor, Question, ResponseCompleteness, Sample
from ragstone.batch.estimation import synthetic_reply
from ragstone.live import Sampling
from ragstone.testing import DecisionContract, FakeLLM
from ragstone_langchain import LangChainDecisions, LangChainLLM, MonitorHandler, RagEvaluator

decisions = pytest.importorskip("langchain_core.decisions", reason="needs langchain-core 1.8")
SAMPLE = Sample(retrieved_contexts=["Ann ran."], response="Ann ran. Bob sat.")


class Gate(decisions.BaseDecisionModel):
    """Says the first choice with .75, and notes what it was asked."""

    model: str = "gate"
    asked: list = []  # noqa: RUF012 - pydantic copies it
    fails: int = 0

    @property
    def _provider(self):
        return "none"

    def _classify(self, state, questions):
        self.asked.append((state, questions))
        if len(self.asked) <= self.fails:
            raise ConnectionError("a bad moment")
        answers = {}
        for name, question in questions.items():
            if question.type == "noul":
                answers[name] = {"type": "noul", "noul": 0.9}
                continue
            first, *others = question.criteria
            shares = {first: 0.75, **dict.fromkeys(others, 0.25 / len(others))}
            answers[name] = {"type": "choice", "choice": first, "probabilities": shares, "confidence": 0.5}
        usage = {"input_tokens": 20, "output_tokens": 3, "total_tokens": 23}
        return decisions.ClassifierResponse.model_validate({"model": "gate", "answers": answers, "usage": usage})


class TestJudge(DecisionContract):
    def model(self):
        return LangChainDecisions(Gate())


def test_texts_are_the_state_and_questions_are_choices():
    gate = Gate()
    outcome = Faithfulness(llm=LangChainDecisions(gate)).score(SAMPLE)
    assert (outcome.value, outcome.usage.llm_calls, outcome.usage.input_tokens) == (0.75, 1, 20)
    ((state, questions),) = gate.asked
    assert state == {"text": "Ann ran."}
    assert [list(question.criteria) for question in questions.values()] == [["yes", "no"]] * 2
    assert "Bob sat." in questions["2"].instructions


@pytest.mark.parametrize(
    "around",
    [
        lambda gate: gate,
        lambda gate: gate.with_retry(stop_after_attempt=3, wait_exponential_jitter=False),
        lambda gate: gate.with_fallbacks([Gate()]),
        lambda gate: gate.with_config(tags=["x"]),
    ],
)
def test_what_is_around_one_is_one_too(around):
    gate = Gate(fails=0)
    for judge in (LangChainDecisions(around(gate)), LangChainLLM(around(gate))):
        assert isinstance(judge, LangChainDecisions)
        assert judge.model == "gate"
        assert Faithfulness(llm=judge).score(SAMPLE).value == 0.75


def test_options_and_what_is_no_decision_model():
    assert LangChainLLM(Gate(), name="mine", identity="v1").identity == "v1"
    with pytest.raises(TypeError, match="FakeListChatModel is no decision model of LangChain's"):
        LangChainDecisions(FakeListChatModel(responses=[""]))
    with pytest.raises(ValueError, match="most_questions"):
        LangChainDecisions(Gate(), most_questions=0)
    chat = LangChainLLM(FakeListChatModel(responses=["yes"]))
    assert pickle.loads(pickle.dumps(chat)).model == chat.model


def test_the_evaluator_takes_a_bare_one_and_a_writer():
    writer = FakeLLM(synthetic_reply)
    result = RagEvaluator("response_completeness", llm=Gate(), writer=writer)(inputs="Who?", outputs="Ann did.")
    assert (result["score"], len(writer.requests)) == (0.75, 1)
    assert (
        RagEvaluator(ResponseCompleteness(), llm=Gate(), writer=writer)(inputs="Who?", outputs="Ann.")["score"] == 0.75
    )


def test_the_judge_is_invisible_to_the_app():
    heard = []

    class Listener(BaseCallbackHandler):
        def on_chain_start(self, serialized, inputs, **event):
            heard.append(event.get("run_type"))

    judge = LangChainDecisions(Gate().with_config(callbacks=[Listener()]))
    request = DecisionRequest("demo", {"text": "Ann."}, {"1": Question("Is it?", ("yes", "no"))})

    def inside(_):
        judge.decide(request)
        return asyncio.run(judge.adecide(request)).probabilities

    found = RunnableLambda(inside).invoke("go", {"callbacks": [Listener()]})
    assert found == {"1": {"yes": 0.75, "no": 0.25}}
    assert heard == [None], "the app's own run alone"


# --- an app's own decision models


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Emma is by Jane Austen."), Document("Bath is a town.")]


def ask(text):
    return {"state": text, "questions": {"ok": decisions.Noul(instructions="Is it a question?")}}


def watched(run):
    seen = []
    monitor = Monitor(
        Faithfulness(llm=FakeLLM(lambda _: {"claims": []})), sampling=Sampling(where=lambda sample: seen.append(sample))
    )
    with monitor:
        run({"callbacks": [MonitorHandler(monitor)]})
    return [(sample.user_input, sample.response) for sample in seen], monitor.stats().skipped


def test_alone_it_is_a_model_and_no_sample():
    samples, skipped = watched(lambda config: Gate().invoke(ask("Who wrote Emma?"), config))
    assert (samples, dict(skipped)) == ([], {"only_model": 1})


def test_in_a_chain_it_is_a_guard_or_a_grader_and_no_answer():
    gate, retriever = Gate(), Retriever()
    chain = (
        RunnablePassthrough.assign(gate=RunnableLambda(lambda x: ask(x["question"])) | gate)
        | RunnablePassthrough.assign(context=RunnableLambda(lambda x: x["question"]) | retriever)
        | RunnablePassthrough.assign(answer=RunnableLambda(lambda x: "Jane Austen."))
    )

    def grade(x):
        found = retriever.invoke(x["question"])
        kept = [each for each in found if gate.invoke(ask(each.page_content)).answers["ok"].noul > 0.5]
        return {**x, "documents": kept, "answer": "Jane Austen."}

    for app in (chain, RunnableLambda(grade)):
        samples, skipped = watched(lambda config, app=app: app.invoke({"question": "Who wrote Emma?"}, config))
        assert (samples, dict(skipped)) == ([("Who wrote Emma?", "Jane Austen.")], {})
