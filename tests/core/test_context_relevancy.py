"""ContextRelevancy: batches, long contexts, and cosines that rank sentences."""

import math
import re

import numpy as np
import pytest

from ragstone import ContextRelevancy, Sample, evaluate
from ragstone.judging import tokens
from ragstone.metrics.fitted import SENTENCES
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import fenced, filled, graded, step, truth  # noqa: TID252

CONTEXTS = ["  One is here. Two is here.\n", "Three is here.", "Four is here. Five is here. Six is here."]
ALL = ["One", "Two", "Three", "Four", "Five", "Six"]
CHUNK_OF = [0, 0, 1, 2, 2, 2]
SAMPLE = Sample(user_input="Which?", retrieved_contexts=CONTEXTS)


def of_sentences(outcome):
    return [verdict for verdict in outcome.verdicts if verdict.kind == "sentence"]


@pytest.mark.parametrize("limit", [230, 1000])
def test_what_does_not_fit_one_prompt_goes_out_in_batches_in_one_round(limit):
    contexts = [f"Sentence {i} of a chunk. The needle{i} is here." for i in range(120)]
    llm = FakeLLM(truth)
    metric = ContextRelevancy(llm=llm, max_input_tokens=limit)
    flow = metric.flow(Sample(user_input="Which have needle?", retrieved_contexts=contexts))
    round_ = next(flow)
    assert len(round_) > 1
    seen = []
    for request in round_:
        assert tokens(request.system, request.user) <= limit
        text = fenced(request)[0]["sentences"]
        seen += re.findall(r"Sentence \d+ of a chunk\.|The needle\d+ is here\.", text)
    assert seen == [s for i in range(120) for s in (f"Sentence {i} of a chunk.", f"The needle{i} is here.")]
    with pytest.raises(StopIteration) as end:
        flow.send(tuple(llm.generate(request) for request in round_))
    outcome = end.value.value
    assert (outcome.value, outcome.breakdown["chunk"]) == (0.5, 1.0)
    assert all(("needle" in v.text) == (v.verdict == "relevant") for v in outcome.verdicts)


@pytest.mark.parametrize("asking", ["one_by_one", "together"])
def test_one_sentence_too_long_for_any_prompt_is_over_budget_and_costs_nothing(asking):
    llm = FakeLLM(truth, asking=asking)
    sample = Sample(user_input="?", retrieved_contexts=["Short one.", "x" * 5000])
    outcome = ContextRelevancy(llm=llm, max_input_tokens=1000).score(sample)
    assert outcome.reason == "over_budget"
    assert "max_input_tokens" in outcome.detail
    assert not llm.requests


@pytest.mark.parametrize(("limit", "passages"), [(None, 4), (400, 11)])
def test_a_long_context_is_judged_in_runs_of_its_sentences(limit, passages):
    """Of some 500 tokens, or what the judge takes; each sentence is in one of them."""
    text = "  " + "\n".join(f"Sentence number {i:03} of one long chunk." for i in range(200)) + " "
    llm = FakeLLM(lambda request: filled(request.schema))
    ContextRelevancy(llm=llm, asking="one_by_one", max_input_tokens=limit).score(
        Sample(user_input="?", retrieved_contexts=[" Short.\n", text])
    )
    runs = [fenced(request)[0]["passage"] for request in llm.requests if step(request) == "passage"]
    assert len(runs) == 1 + passages
    assert runs[0] == " Short.\n", "one that is short enough stays as it is"
    assert "\n".join(runs[1:]) == text.strip(), "as it stands in the context, none twice"
    assert all(tokens(run) <= 500 + 20 for run in runs)
    shown = [fenced(request)[0] for request in llm.requests if step(request) == "sentence"]
    assert len(shown) == 201
    assert all(data["sentence"] in data["passage"] for data in shown)
    assert all(tokens(request.system, request.user) <= (limit or 700) for request in llm.requests)


@pytest.mark.parametrize("ranked", [False, True])
def test_equal_passages_are_asked_about_once(ranked):
    contexts = ["One is here. Two is here.", "Three is here.", "One is here. Two is here."]
    llm = FakeLLM(graded(lambda _: {"yes": 0.8, "no": 0.2}), asking="one_by_one", gives_probabilities=ranked)
    metric = ContextRelevancy(llm=llm, embedder=FakeEmbedder() if ranked else None)
    outcome = metric.score(Sample(user_input="Which?", retrieved_contexts=contexts))
    asked = [step(request) for request in llm.requests]
    assert (asked.count("passage"), asked.count("sentence")) == (2, 0 if ranked else 5)
    assert [(v.evidence[0].chunk, v.text.split()[0]) for v in of_sentences(outcome)] == [
        (0, "One"), (0, "Two"), (1, "Three"), (2, "One"), (2, "Two")
    ]  # fmt: skip


def cosines(**by_word):
    """An embedder that places texts at a cosine to the question, by the words that stand in them."""

    def vectors(texts):
        found = [max([c for word, c in by_word.items() if word in text], default=0.0) for text in texts]
        found[0] = 1.0
        return np.array([[c, math.sqrt(1 - c * c)] for c in found], dtype=np.float64)

    return FakeEmbedder(vectors=vectors)


def ranked(of_passage, embedder, contexts, **options):
    """The outcome of a judge that gives passages these probabilities by their first word, and how often it was asked."""

    def probability(request):
        yes = of_passage[fenced(request)[0]["passage"].split()[0]]
        return {"yes": yes, "no": 1 - yes}

    llm = FakeLLM(graded(probability), asking="one_by_one", gives_probabilities=True)
    metric = ContextRelevancy(llm=llm, embedder=embedder, **options)
    outcome = metric.score(Sample(user_input="Which?", retrieved_contexts=contexts))
    assert {step(request) for request in llm.requests} == {"passage"}
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls) == (len(llm.requests), 1)
    return outcome


def test_an_embedder_with_one_vector_for_all_texts_is_said():
    judge = FakeLLM(graded(lambda _: {"yes": 0.8, "no": 0.2}), asking="one_by_one", gives_probabilities=True)
    for embedder, same in ((cosines(**{"is": 1.0}), True), (cosines(One=1.0), False)):
        metric = ContextRelevancy(llm=judge, embedder=embedder)
        report = str(evaluate([SAMPLE], [metric], progress=False))
        assert ("the embedder gave one vector for different texts" in report) == same


def test_with_an_embedder_the_judge_sees_passages_and_cosines_rank_their_sentences():
    """By the formula, with the weights that ship; the sentence before stands in the same context."""
    of_passage, embedder = {"One": 0.9, "Three": 0.3, "Four": 0.0}, cosines(Two=0.8, Five=0.4, Three=-0.2)
    outcome = ranked(of_passage, embedder, CONTEXTS)
    bare = [f"{word} is here." for word in ALL]
    behind = [bare[0], f"{bare[0]} {bare[1]}", bare[2], bare[3], f"{bare[3]} {bare[4]}", f"{bare[4]} {bare[5]}"]
    assert embedder.calls == [("Which?", *bare, *behind)]
    weighed = []
    for judged, *similar in zip(
        [0.9, 0.9, 0.3, 1e-4, 1e-4, 1e-4], [0, 0.8, -0.2, 0, 0.4, 0], [0, 0.8, -0.2, 0, 0.4, 0.4], strict=True
    ):
        signals = dict(zip(SENTENCES.weights, (math.log(judged / (1 - judged)), *similar), strict=True))
        weighed.append(SENTENCES.intercept + sum(SENTENCES.weights[name] * value for name, value in signals.items()))
    least = max(0.0, max(weighed) - SENTENCES.reach)
    expected = [1 / (1 + math.exp(least - z)) for z in weighed]
    assert [v.probability for v in of_sentences(outcome)] == pytest.approx(expected, abs=1e-6)
    relevant = [z >= least for z in weighed]
    assert [v.verdict == "relevant" for v in of_sentences(outcome)] == relevant
    chunks = len({CHUNK_OF[i] for i in range(6) if relevant[i]})
    best = sum(max(p for p, chunk in zip(expected, CHUNK_OF, strict=True) if chunk == i) for i in range(3))
    assert outcome.breakdown == pytest.approx(
        {
            "sentence": sum(relevant) / 6, "chunk": chunks / 3, "count": sum(relevant) / 6,
            "sentence_expected": sum(expected) / 6, "chunk_expected": best / 3, "expected": sum(expected) / 6,
                "cosine_least": -0.2,
        }
    )  # fmt: skip
    assert outcome.value == outcome.breakdown["count"]
    passages = [v for v in outcome.verdicts if v.kind == "passage"]
    assert [(v.id, v.verdict, v.lowers_score) for v in passages] == [
        ("1-2", "yes", False), ("3-3", "no", False), ("4-6", "no", False)
    ]  # fmt: skip
    assert [v.probability for v in passages] == pytest.approx([0.9, 0.3, 0.0])


@pytest.mark.parametrize(("declared", "asking"), [(False, "one_by_one"), (True, "together"), (False, "together")])
def test_an_embedder_is_not_asked_where_it_says_nothing(declared, asking):
    embedder = cosines()
    llm = FakeLLM(truth, asking=asking, gives_probabilities=declared)
    outcome = ContextRelevancy(llm=llm, embedder=embedder).score(SAMPLE)
    without = ContextRelevancy(llm=FakeLLM(truth, asking=asking)).score(SAMPLE)
    assert (outcome.value, outcome.verdicts) == (without.value, without.verdicts)
    assert (embedder.calls, outcome.usage.embed_calls) == ([], 0)


def by_line(text, language, /):
    assert language in ("de", "en")
    return [(m.group(), m.start(), m.end()) for m in re.finditer(r"[^\n]*\n?", text) if m.group()]


def test_another_splitter_and_language_whose_blank_pieces_are_no_sentences():
    metric = ContextRelevancy(llm=FakeLLM({"ids": [2]}), splitter=by_line, language="de")
    outcome = metric.score(Sample(user_input="?", retrieved_contexts=["a. b\n\n c. d \n", "e"]))
    (shown,) = outcome.verdicts[1].evidence
    assert (outcome.value, shown.start, shown.end, shown.text) == (pytest.approx(1 / 3), 7, 11, "c. d")
