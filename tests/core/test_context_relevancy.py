"""ContextRelevancy against its formula; sentences, copies, batches and places."""

import re

import pytest

from ragstone import ContextRelevancy, Sample
from ragstone.asking import tokens
from ragstone.testing import FakeLLM

from .judges import (
    fenced,
    filled,
    graded,
    numbered_lines,
    script,
    step,
    truth,
)

CONTEXTS = ["  One is here. Two is here.\n", "Three is here.", "Four is here. Five is here. Six is here."]
ALL = ["One", "Two", "Three", "Four", "Five", "Six"]
CHUNK_OF = [0, 0, 1, 2, 2, 2]
SAMPLE = Sample(user_input="Which?", retrieved_contexts=CONTEXTS)


def ids(*numbers):
    return FakeLLM(script(sentences={"ids": list(numbers)}))


def copies(*texts):
    return FakeLLM(script(copies={"sentences": list(texts)}))


@pytest.mark.parametrize("granularity", ["sentence", "chunk"])
@pytest.mark.parametrize("chosen", [[], [1], [3], [1, 2], [4, 5], [6, 1], [1, 3, 4], [1, 2, 3, 4, 5, 6]])
def test_the_formula(chosen, granularity):
    outcome = ContextRelevancy(llm=ids(*chosen), granularity=granularity).score(SAMPLE)
    chunks = {CHUNK_OF[i - 1] for i in chosen}
    assert outcome.breakdown == {"sentence": len(chosen) / 6, "chunk": len(chunks) / 3}
    assert outcome.value == outcome.breakdown[granularity]
    assert [v.verdict for v in outcome.verdicts] == ["relevant" if i in chosen else "irrelevant" for i in range(1, 7)]
    assert f"{len(chosen)} of 6 sentences in {len(chunks)} of 3 contexts" in outcome.reason


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("selection", ["ids", "verbatim"])
def test_each_relevant_sentence_says_where_it_stands(selection, asking):
    """Chunk index and offsets into the original chunk."""
    metric = ContextRelevancy(llm=FakeLLM(truth), selection=selection, asking=asking)
    outcome = metric.score(Sample(user_input="Which say Five?", retrieved_contexts=CONTEXTS))
    (shown,) = [e for v in outcome.verdicts for e in v.evidence]
    assert (shown.field, shown.chunk, shown.text) == ("retrieved_contexts", 2, "Five is here.")
    assert CONTEXTS[shown.chunk][shown.start : shown.end] == shown.text
    assert outcome.value == pytest.approx(1 / 6)
    assert outcome.usage.llm_calls == (1 if asking == "together" else 6 + 3)


def test_every_sentence_is_shown_once_with_its_number():
    llm = ids()
    ContextRelevancy(llm=llm).score(SAMPLE)
    data, _ = fenced(llm.requests[0])
    assert data["question"] == "Which?"
    assert numbered_lines(data["sentences"]) == {str(i): f"{word} is here." for i, word in enumerate(ALL, 1)}


@pytest.mark.parametrize("chunks", [["A.", "", "  "], ["A.", "\n", "​"]])
def test_a_blank_chunk_is_a_chunk_and_holds_no_sentence(chunks):
    outcome = ContextRelevancy(llm=ids(1)).score(Sample(user_input="?", retrieved_contexts=chunks))
    assert outcome.breakdown["chunk"] == pytest.approx(1 / 3)


COPIED = [
    ("word for word", ["Five is here."], {5}, 0),
    ("white space, case and quotes folded", ["  five\nIS   here. "], {5}, 0),
    ("said twice", ["Five is here.", "Five is here.", "FIVE is here."], {5}, 0),
    ("two in one text", ["Four is here. Five is here."], {4, 5}, 0),
    ("across chunks", ["One is here.", "Six is here."], {1, 6}, 0),
    ("the phrase", ["Insufficient Information"], set(), 0),
    ("with its full stop", ["Insufficient Information."], set(), 0),
    ("in other letters", [" insufficient   information. "], set(), 0),
    ("in quotes", ['"Insufficient Information"'], set(), 0),
    ("in quotes with a full stop", ['"Insufficient Information."'], set(), 0),
    ("in quotes before a full stop", ['"Insufficient Information".'], set(), 0),
    ("nothing", [], set(), 0),
    ("blank", ["", "  "], set(), 0),
    ("invented", ["Seven is here."], set(), 1),
    ("invented twice", ["Seven is here.", "Seven is here."], set(), 1),
    ("one of each", ["One is here. Seven is here."], {1}, 1),
    ("five invented", [f"{i} is not here." for i in range(5)], set(), 5),
    ("a preamble", ["Sure! Here is the sentence:", "Two is here."], {2}, 2),
    ("half a sentence", ["Five is"], set(), 1),
]


@pytest.mark.parametrize(("what", "said", "chosen", "unmatched"), COPIED, ids=[case[0] for case in COPIED])
def test_copies(what, said, chosen, unmatched):
    outcome = ContextRelevancy(llm=copies(*said), selection="verbatim").score(SAMPLE)
    assert outcome.value == len(chosen) / 6
    assert outcome.breakdown["unmatched"] == unmatched
    assert {int(v.id) for v in outcome.verdicts if v.verdict == "relevant"} == chosen
    assert len([v for v in outcome.verdicts if v.verdict == "unmatched"]) == unmatched
    assert ("are not in the contexts" in outcome.reason) is bool(unmatched)


def test_kinds_of_quotes_are_folded():
    sample = Sample(user_input="?", retrieved_contexts=["She said “it’s fine” to him. No."])
    outcome = ContextRelevancy(llm=copies('She said "it\'s fine" to him.'), selection="verbatim").score(sample)
    assert (outcome.breakdown["sentence"], outcome.breakdown["unmatched"]) == (0.5, 0.0)


def test_a_copy_of_what_the_judge_was_shown_counts():
    """The prompt shows NUL as U+FFFD; the judge can copy only that."""
    sample = Sample(user_input="?", retrieved_contexts=["The cat\x00 sat."])

    def shown(request):
        return {"sentences": [fenced(request)[0]["context"]]}

    outcome = ContextRelevancy(llm=FakeLLM(script(copies=shown)), selection="verbatim").score(sample)
    assert (outcome.value, outcome.breakdown["unmatched"]) == (1.0, 0.0)
    assert outcome.verdicts[0].evidence[0].text == "The cat\x00 sat."


def test_the_same_sentence_in_two_chunks_is_two_sentences():
    sample = Sample(user_input="?", retrieved_contexts=["Twice. Once.", "Twice."])
    outcome = ContextRelevancy(llm=copies("Twice."), selection="verbatim").score(sample)
    assert outcome.breakdown["sentence"] == pytest.approx(2 / 3)
    assert outcome.breakdown["chunk"] == 1.0


@pytest.mark.parametrize("selection", ["ids", "verbatim"])
@pytest.mark.parametrize("limit", [230, 300, 1000])
def test_what_does_not_fit_one_prompt_goes_out_in_batches_in_one_round(limit, selection):
    contexts = [f"Sentence {i} of a chunk. The needle{i} is here." for i in range(120)]
    llm = FakeLLM(truth)
    metric = ContextRelevancy(llm=llm, max_input_tokens=limit, selection=selection)
    sample = Sample(user_input="Which have needle?", retrieved_contexts=contexts)
    flow = metric.flow(sample)
    round_ = next(flow)
    assert len(round_) > 1
    seen = []
    for request in round_:
        assert tokens(request.system, request.user) <= limit
        data, _ = fenced(request)
        text = data["sentences" if selection == "ids" else "context"]
        seen += re.findall(r"Sentence \d+ of a chunk\.|The needle\d+ is here\.", text)
    assert seen == [s for i in range(120) for s in (f"Sentence {i} of a chunk.", f"The needle{i} is here.")]
    with pytest.raises(StopIteration) as end:
        flow.send(tuple(llm.generate(request) for request in round_))
    outcome = end.value.value
    assert outcome.value == 0.5
    assert outcome.breakdown["chunk"] == 1.0
    assert all(("needle" in v.text) == (v.verdict == "relevant") for v in outcome.verdicts)


def test_ids_of_another_batch_are_unknown():
    contexts = [f"Sentence number {i} of a chunk." for i in range(60)]
    llm = FakeLLM(lambda request: {"ids": [1]})
    outcome = ContextRelevancy(llm=llm, max_input_tokens=300).score(Sample(user_input="?", retrieved_contexts=contexts))
    assert outcome.reason == "judge_unparseable"
    assert "unknown id 1;" in outcome.detail


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("selection", ["ids", "verbatim"])
def test_one_sentence_too_long_for_any_prompt_is_over_budget_and_costs_nothing(selection, asking):
    llm = FakeLLM(truth, asking=asking)
    sample = Sample(user_input="?", retrieved_contexts=["Short one.", "x" * 5000])
    outcome = ContextRelevancy(llm=llm, max_input_tokens=1000, selection=selection).score(sample)
    assert outcome.reason == "over_budget"
    assert "max_input_tokens" in outcome.detail
    assert not llm.requests


def test_the_judges_own_limit_counts():
    llm = FakeLLM(truth)
    llm.max_input_tokens = 300
    contexts = [f"Sentence number {i} of a chunk." for i in range(60)]
    metric = ContextRelevancy(llm=llm)
    assert len(next(metric.flow(Sample(user_input="x?", retrieved_contexts=contexts)))) > 1
    wider = ContextRelevancy(llm=llm, max_input_tokens=50_000)
    assert len(next(wider.flow(Sample(user_input="x?", retrieved_contexts=contexts)))) == 1


P = [0.9, 0.2, 0.6, 0.1, 0.3, 0.4]


@pytest.mark.parametrize("granularity", ["sentence", "chunk"])
@pytest.mark.parametrize("scoring", ["count", "expected"])
def test_probabilities(scoring, granularity):
    def probability(request):
        p = P[ALL.index(fenced(request)[0]["sentence"].split()[0])] if step(request) == "sentence" else 0.5
        return {"yes": p, "no": 1 - p}

    llm = FakeLLM(graded(probability), asking="one_by_one")
    outcome = ContextRelevancy(llm=llm, scoring=scoring, granularity=granularity).score(SAMPLE)
    assert outcome.breakdown == pytest.approx(
        {
            "sentence": 2 / 6,
            "chunk": 2 / 3,
            "sentence_expected": sum(P) / 6,
            "chunk_expected": (0.9 + 0.6 + 0.4) / 3,
        }
    )
    assert outcome.value == outcome.breakdown[granularity if scoring == "count" else f"{granularity}_expected"]
    assert [v.probability for v in outcome.verdicts] == pytest.approx(P)


@pytest.mark.parametrize(
    ("of_sentence", "of_passage", "p"),
    [
        (0.6, 0.5, 0.6),
        (0.5, 0.6, 0.6),
        (0.6, 0.6, 0.36 / 0.52),
        (0.6, 0.4, 0.5),
        (0.9, 0.2, 0.18 / 0.26),
        (0.6, 0.25, 0.15 / 0.45),
        (1.0, 0.0, 0.5),
        (1.0, 0.1, 1.0),
        (0.0, 0.9, 0.0),
    ],
)
def test_the_odds_of_sentence_and_passage_are_multiplied(of_sentence, of_passage, p):
    def probability(request):
        yes = of_sentence if step(request) == "sentence" else of_passage
        return {"yes": yes, "no": 1 - yes}

    llm = FakeLLM(graded(probability), asking="one_by_one")
    outcome = ContextRelevancy(llm=llm).score(Sample(user_input="?", retrieved_contexts=["One."]))
    (verdict,) = outcome.verdicts
    assert verdict.probability == pytest.approx(p)
    assert (verdict.verdict == "relevant") is (p > 0.5 + 1e-9)


@pytest.mark.parametrize(
    ("of_passages", "weighed"),
    [
        ((0.4, 0.25, 0.1), (0.5, 1 / 3, 1 / 7)),  # an answer in two of them: neither holds it alone
        ((0.1, 0.1, 0.1), (0.5, 0.5, 0.5)),
        ((0.5, 0.4, 0.1), (0.5, 0.4, 0.1)),  # one may hold it alone
        ((0.8, 0.4, 0.1), (0.8, 0.4, 0.1)),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((0.4, 0.0, 0.2), (0.5, 0.0, 3 / 11)),
    ],
)
def test_several_passages_of_which_none_holds_the_answer_are_weighed_against_the_best(of_passages, weighed):
    def probability(request):
        data, _ = fenced(request)
        yes = 0.6 if step(request) == "sentence" else of_passages[CONTEXTS.index(data["passage"])]
        return {"yes": yes, "no": 1 - yes}

    outcome = ContextRelevancy(llm=FakeLLM(graded(probability), asking="one_by_one")).score(SAMPLE)
    expected = [1.5 * p / (1.5 * p + 1 - p) for p in weighed]
    found = {
        CONTEXTS.index(context): v.probability for v in outcome.verdicts for context in CONTEXTS if v.text in context
    }
    assert found == pytest.approx(dict(enumerate(expected)))
    for verdict in outcome.verdicts:
        assert (verdict.verdict == "relevant") is (verdict.probability > 0.5)


def test_one_passage_without_probabilities_leaves_the_others_as_they_are():
    llm = FakeLLM(lambda request: "no" if step(request) == "passage" else "yes", asking="one_by_one")
    assert ContextRelevancy(llm=llm).score(SAMPLE).value == 0.0


@pytest.mark.parametrize(("passage", "chosen"), [("yes", 2 / 3), ("no", 0.0)])
def test_without_probabilities_both_must_say_so(passage, chosen):
    def reply(request):
        data, _ = fenced(request)
        return passage if step(request) == "passage" else "no" if "Two" in data["sentence"] else "yes"

    sample = Sample(user_input="?", retrieved_contexts=["One. Two. Three."])
    assert ContextRelevancy(llm=FakeLLM(reply), asking="one_by_one").score(sample).value == pytest.approx(chosen)


def test_asked_one_by_one_each_sentence_is_seen_within_its_own_chunk():
    llm = FakeLLM(truth)
    metric = ContextRelevancy(llm=llm, asking="one_by_one")
    seen = [(step(request), fenced(request)[0]) for request in next(metric.flow(SAMPLE))]
    assert [data["passage"] for name, data in seen if name == "passage"] == CONTEXTS
    whole = None
    for name, data in seen:
        assert next(iter(data)) == "passage", "what requests share comes first"
        if name == "passage":
            whole = data["passage"]
        else:
            assert data["sentence"] in data["passage"]
            assert data["passage"] == whole, "a passage is asked about before its sentences, and read once"


@pytest.mark.parametrize("limit", [300, 400, 600])
def test_of_a_long_chunk_the_sentences_around_are_shown(limit):
    text = " ".join(f"Sentence number {i:03} of one long chunk." for i in range(200))
    llm = FakeLLM(lambda request: filled(request.schema))
    ContextRelevancy(llm=llm, asking="one_by_one", max_input_tokens=limit).score(
        Sample(user_input="?", retrieved_contexts=["Another chunk.", text])
    )
    shown = sorted(
        (fenced(request)[0] for request in llm.requests if step(request) == "sentence"),
        key=lambda data: re.findall(r"\d{3}", data["sentence"]),
    )
    assert len(shown) == 201
    windows = [fenced(request)[0]["passage"] for request in llm.requests if step(request) == "passage"]
    assert sorted(windows) == sorted({data["passage"] for data in shown}), "each window once"
    for i, data in enumerate(shown[1:]):
        assert data["sentence"] in data["passage"]
        assert data["passage"] in text
        numbers = [int(n) for n in re.findall(r"\d{3}", data["passage"])]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "whole sentences in order"
        if 20 < i < 180:
            assert numbers[0] < i < numbers[-1], "text on both sides"
    assert all(tokens(request.system, request.user) <= limit for request in llm.requests)


def test_another_splitter_and_language():
    def by_line(text, language, /):
        assert language == "de"
        return [(m.group(), m.start(), m.end()) for m in re.finditer(r"[^\n]*\n?", text) if m.group()]

    llm = ids(2)
    metric = ContextRelevancy(llm=llm, splitter=by_line, language="de")
    outcome = metric.score(Sample(user_input="?", retrieved_contexts=["a. b\nc. d\n", "e"]))
    assert outcome.value == pytest.approx(1 / 3)
    assert outcome.verdicts[1].evidence[0].text == "c. d"


def test_blank_pieces_of_a_splitter_are_no_sentences():
    def by_line(text, language, /):
        return [(m.group(), m.start(), m.end()) for m in re.finditer(r"[^\n]*\n", text)]

    outcome = ContextRelevancy(llm=ids(1), splitter=by_line).score(
        Sample(user_input="?", retrieved_contexts=["\n one \n  \n"])
    )
    (shown,) = outcome.verdicts[0].evidence
    assert (outcome.value, shown.start, shown.end, shown.text) == (1.0, 2, 5, "one")


def test_no_sentence_is_undefined():
    metric = ContextRelevancy(llm=ids(), splitter=lambda text, language: [])
    outcome = metric.score(SAMPLE)
    assert outcome.reason == "undefined"
    assert outcome.detail.startswith("retrieved_contexts: ")
    assert outcome.usage.llm_calls == 0


def test_repeated_ids_are_refused_not_counted():
    outcome = ContextRelevancy(llm=ids(1, 1)).score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert "twice" in outcome.detail


@pytest.mark.parametrize(
    ("options", "named"),
    [({"selection": "both"}, "selection"), ({"granularity": "word"}, "granularity"), ({"language": "xx"}, "language")],
)
def test_an_option_out_of_its_range_is_refused_by_name(options, named):
    with pytest.raises(ValueError, match=named):
        ContextRelevancy(llm=ids(), **options)
