"""LangChain's decision models: as judges, and in an app that a monitor watches."""

import asyncio

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ragstone import DecisionRequest, Faithfulness, Question, ResponseCompleteness, Sample
from ragstone.batch.estimation import synthetic_reply
from ragstone.testing import DecisionContract, FakeLLM
from ragstone_langchain import LangChainDecisions, LangChainLLM, MonitorHandler, RagEvaluator

from ..support.noting import Noting  # noqa: TID252
from .monitored import ANSWER, QUESTION, Searching

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


def test_what_is_around_one_is_one_too():
    gate, retry = Gate(), {"stop_after_attempt": 2, "wait_exponential_jitter": False}
    for around in (
        gate,
        Gate(fails=1).with_retry(**retry),
        gate.with_fallbacks([Gate()]),
        gate.with_config(tags=["x"]),
    ):
        assert LangChainDecisions(around).model == "gate"
        assert Faithfulness(llm=around).score(SAMPLE).value == 0.75
        with pytest.raises(TypeError, match="is a decision model, which writes no texts; pass it as llm= itself"):
            LangChainLLM(around)


def test_options_and_what_is_no_decision_model():
    assert LangChainDecisions(Gate(), name="mine", identity="v1").identity == "v1"
    with pytest.raises(TypeError, match="FakeListChatModel is no decision model of LangChain's"):
        LangChainDecisions(FakeListChatModel(responses=[""]))
    with pytest.raises(ValueError, match="most_questions"):
        LangChainDecisions(Gate(), most_questions=0)


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


def ask(text):
    return {"state": text, "questions": {"ok": decisions.Noul(instructions="Is it a question?")}}


def watched(app, asked):
    monitor = Noting()
    app.invoke(asked, {"callbacks": [MonitorHandler(monitor)]})
    return [(sample.user_input, sample.response) for sample in monitor.samples], dict(monitor.skipped)


def test_in_an_app_it_is_a_guard_or_a_grader_and_no_answer_and_alone_no_sample():
    gate, retriever = Gate(), Searching()
    chain = (
        RunnablePassthrough.assign(gate=RunnableLambda(lambda x: ask(x["question"])) | gate)
        | RunnablePassthrough.assign(context=RunnableLambda(lambda x: x["question"]) | retriever)
        | RunnablePassthrough.assign(answer=RunnableLambda(lambda x: ANSWER))
    )

    def grade(x):
        found = retriever.invoke(x["question"])
        kept = [each for each in found if gate.invoke(ask(each.page_content)).answers["ok"].noul > 0.5]
        return {**x, "documents": kept, "answer": ANSWER}

    for app in (chain, RunnableLambda(grade)):
        assert watched(app, {"question": QUESTION}) == ([(QUESTION, ANSWER)], {})
    assert watched(gate, ask(QUESTION)) == ([], {"only_model": 1})
