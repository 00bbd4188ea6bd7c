"""The real `StringEvaluator`: LangChain's checks, our result."""

import asyncio
import importlib
import sys
import warnings

import pytest

from ragstone import AlignmentCoverage, SummarizationScore
from ragstone_langchain.evaluator import RagEvaluator

from .samples import ANSWER, FIRST, QUESTION, SECOND, VALUE, judge, relevancy


def string_evaluator(metric, **options):
    pytest.importorskip("langchain_classic.evaluation")
    from ragstone_langchain.classic import RagStringEvaluator

    return RagStringEvaluator(RagEvaluator(metric, **options))


def both(evaluator, **parts):
    now, later = evaluator.evaluate_strings(**parts), asyncio.run(evaluator.aevaluate_strings(**parts))
    for result in (now, later):
        result["metadata"]["usage"]["seconds"] = 0
    assert now == later
    return now


def test_it_is_a_string_evaluator():
    schema = pytest.importorskip("langchain_classic.evaluation")
    evaluator = string_evaluator(relevancy(), key="padding")
    assert isinstance(evaluator, schema.StringEvaluator)
    assert (evaluator.evaluation_name, evaluator.requires_input, evaluator.requires_reference) == (
        "padding",
        True,
        False,
    )


def test_it_scores_as_the_evaluator_does():
    evaluator = string_evaluator(relevancy(threshold=0.1))
    result = both(evaluator, prediction=ANSWER, input=QUESTION, contexts=[FIRST, SECOND], tags=["t"])
    assert (result["score"], result["value"]) == (VALUE, "passed")
    assert result["reasoning"].startswith("1 of 4 sentences")


def test_a_missing_question_is_refused_as_langchain_refuses_it():
    evaluator = string_evaluator(relevancy())
    with pytest.raises(ValueError, match="requires an input string"):
        evaluator.evaluate_strings(prediction=ANSWER, contexts=[FIRST])
    with pytest.raises(ValueError, match="requires an input string"):
        asyncio.run(evaluator.aevaluate_strings(prediction=ANSWER, contexts=[FIRST]))


def test_a_reference_is_warned_of_as_langchain_warns():
    with pytest.warns(UserWarning, match="Ignoring reference in RagStringEvaluator"):
        string_evaluator(relevancy()).evaluate_strings(
            prediction=ANSWER, input=QUESTION, reference="x", contexts=[FIRST]
        )


def test_what_cannot_be_scored_has_no_score():
    result = both(string_evaluator(relevancy()), prediction=ANSWER, input=QUESTION)
    assert result["score"] is None
    assert result["reasoning"].startswith("missing_input: retrieved_contexts: ")


@pytest.mark.parametrize("metric", [SummarizationScore, AlignmentCoverage])
@pytest.mark.parametrize("original", [{"input": FIRST}, {"contexts": [FIRST]}])
def test_a_summarys_original_is_passed_either_way_without_complaint(metric, original):
    evaluator = string_evaluator(metric(llm=judge()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert both(evaluator, prediction=ANSWER, **original)["score"] is not None


def test_without_langchain_classic_the_error_names_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "ragstone_langchain.classic", raising=False)
    monkeypatch.setitem(sys.modules, "langchain_classic.evaluation", None)
    monkeypatch.setitem(sys.modules, "langchain_classic", None)
    with pytest.raises(ImportError, match="pip install langchain-classic"):
        importlib.import_module("ragstone_langchain.classic")
