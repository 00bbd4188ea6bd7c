"""ResponseRelevancy against its formula, with vectors that the test chooses."""

import dataclasses
import math

import numpy as np
import pytest

from ragstone import BaseEmbedder, LLMReply, ResponseRelevancy, Sample
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import drive, fenced, graded, script, step, truth

SAMPLE = Sample(user_input="asked", response="The response.")
RULES = ("all", "any", "majority", "off")


class Placed(BaseEmbedder):
    """Returns the rows it was made with, whatever the texts."""

    model = "placed"

    def __init__(self, rows):
        self.rows, self.texts = rows, []

    def embed(self, texts, /):
        self.texts.append(list(texts))
        return self.rows


def judge(*flags):
    return FakeLLM(
        script(questions={"questions": [{"question": f"q{i}", "noncommittal": flag} for i, flag in enumerate(flags)]})
    )


def at(*angles):
    """Unit vectors in the plane: the asked question at 0 degrees, the generated ones at these."""
    radians = np.radians([0.0, *angles])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def committal(flags, rule):
    """The definition of c, spelled out."""
    share = sum(flags) / len(flags)
    return {"all": share < 1, "any": share == 0, "majority": share <= 0.5, "off": True}[rule]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("flags", [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)] + [(0,), (1,), (1, 0)])
@pytest.mark.parametrize("angle", [0, 60, 90, 120, 180])
def test_the_formula(angle, flags, rule):
    angles = [angle, 0, 45][: len(flags)]
    embedder = Placed(at(*angles))
    metric = ResponseRelevancy(
        llm=judge(*map(bool, flags)), embedder=embedder, strictness=len(flags), noncommittal=rule
    )
    outcome = metric.score(SAMPLE)
    mean = sum(math.cos(math.radians(a)) for a in angles) / len(angles)
    assert outcome.value == pytest.approx(mean if committal(flags, rule) else 0.0, abs=1e-6)
    assert -1.0 <= outcome.value <= 1.0
    assert math.copysign(1, outcome.value) == 1 or outcome.value < 0, "never -0.0"
    assert outcome.breakdown["noncommittal"] == pytest.approx(sum(flags) / len(flags))
    for i, a in enumerate(angles, 1):
        assert outcome.breakdown[f"cosine_{i}"] == pytest.approx(math.cos(math.radians(a)), abs=1e-6)
    assert [v.verdict for v in outcome.verdicts] == ["noncommittal" if f else "committal" for f in flags]
    assert embedder.texts == [["asked", *(f"q{i}" for i in range(len(flags)))]], "one embedding call for N+1 texts"
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls) == (1, 1)


def test_defaults_are_those_the_issue_names():
    metric = ResponseRelevancy(llm=judge(False), embedder=FakeEmbedder())
    assert (metric.strictness, metric.sampling, metric.noncommittal, metric.bounds) == (
        3,
        "one_call",
        "all",
        (-1.0, 1.0),
    )


def test_opposite_directions_are_minus_one_and_length_does_not_matter():
    rows = np.array([[1e-200, 0.0], [-1e200, 0.0]])
    assert ResponseRelevancy(llm=judge(False), embedder=Placed(rows), strictness=1).score(SAMPLE).value == -1.0


@pytest.mark.parametrize("rows", [[[1, 0], [-0.0, -1]], [[1, 0], [-1, 0]]])
def test_a_zero_is_never_negative(rows):
    flagged = rows[1][0] == -1
    metric = ResponseRelevancy(llm=judge(flagged), embedder=Placed(np.array(rows)), strictness=1)
    outcome = metric.score(SAMPLE)
    assert outcome.value == 0.0
    for number in (outcome.value, *outcome.breakdown.values()):
        assert number or math.copysign(1, number) == 1


def test_one_call_asks_once_and_n_calls_asks_n_times_at_a_real_temperature():
    llm = FakeLLM(truth)
    ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), strictness=4).score(SAMPLE)
    (one,) = llm.requests
    assert (one.temperature, one.sample_index) == (0.0, 0)
    llm = FakeLLM(truth)
    metric = ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), strictness=4, sampling="n_calls")
    outcome = metric.score(SAMPLE)
    assert sorted(request.sample_index for request in llm.requests) == [0, 1, 2, 3]
    assert {request.temperature for request in llm.requests} == {0.7}
    assert len({(request.system, request.user) for request in llm.requests}) == 1
    assert len([name for name in outcome.breakdown if name.startswith("cosine_")]) == 4


def test_the_judge_does_not_see_the_question():
    llm = FakeLLM(truth)
    ResponseRelevancy(llm=llm, embedder=FakeEmbedder()).score(Sample(user_input="Zebra?", response="Yes."))
    assert all("Zebra" not in request.user + request.system for request in llm.requests)


def test_the_questions_are_asked_for_in_the_language_of_the_response():
    llm = FakeLLM(truth)
    ResponseRelevancy(llm=llm, embedder=FakeEmbedder()).score(SAMPLE)
    assert "in the language of the response" in llm.requests[0].system


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.zeros((2, 3)), "zero vector"),
        (np.array([[1.0, 0], [0, 0]]), "zero vector"),
        (np.array([[1.0, np.nan], [1, 0]]), "NaN"),
        (np.array([[1.0, np.inf], [1, 0]]), "NaN or infinity"),
        (np.ones(2), "shape (2,)"),
        (np.ones((1, 3)), "shape (1, 3)"),
        (np.ones((3, 3)), "shape (3, 3)"),
        (np.ones((2, 0)), "shape (2, 0)"),
        (np.ones((2, 2, 2)), "shape (2, 2, 2)"),
        ([[1.0], [1.0, 2.0]], "no array"),
        ([["a"], ["b"]], "no array"),
        ([[10**400], [1]], "no array"),
        ([{}, {}], "no array"),
        (None, "shape ()"),
    ],
)
def test_vectors_that_are_none_are_named(rows, said):
    outcome = ResponseRelevancy(llm=judge(False), embedder=Placed(rows), strictness=1).score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert outcome.detail.startswith("embedder: ")
    assert said in outcome.detail
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls) == (1, 1)


@pytest.mark.parametrize("rows", [[[1, 2], [2, 4]], [(1.0, 2.0), (2.0, 4.0)], np.array([[1, 2], [2, 4]], dtype="i2")])
def test_plain_lists_of_numbers_are_vectors(rows):
    outcome = ResponseRelevancy(llm=judge(False), embedder=Placed(rows), strictness=1).score(SAMPLE)
    assert outcome.value == pytest.approx(1.0)
    assert type(outcome.value) is float


@pytest.mark.parametrize("scoring", ["count", "expected"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("p", [0.0, 0.25, 0.75, 1.0])
def test_probabilities(p, rule, scoring):
    free = script(questions={"questions": ["q"]})
    evasive = graded(lambda request: {"refused": p, "answered": 1 - p})
    llm = FakeLLM(lambda r: evasive(r) if r.choices else free(r), asking="one_by_one")
    metric = ResponseRelevancy(llm=llm, embedder=Placed(at(120)), strictness=1, noncommittal=rule, scoring=scoring)
    outcome = metric.score(SAMPLE)
    off = rule != "off" and p > 0.5
    expected = -0.5 if rule == "off" else -0.5 * (1 - p)
    assert outcome.breakdown["expected"] == pytest.approx(expected, abs=1e-6)
    assert outcome.value == pytest.approx(expected if scoring == "expected" else 0.0 if off else -0.5, abs=1e-6)
    assert outcome.value or math.copysign(1, outcome.value) == 1, "never -0.0"
    assert outcome.verdicts[0].probability == pytest.approx(1 - p)
    assert outcome.usage.llm_calls == 1 + 2


@pytest.mark.parametrize("sampling", ["one_call", "n_calls"])
@pytest.mark.parametrize("response", ["It was in 1967.", "I do not know."])
def test_one_by_one_without_probabilities_agrees_with_together(response, sampling):
    sample = Sample(user_input="When?", response=response)
    together, alone = (
        ResponseRelevancy(llm=FakeLLM(truth, asking=asking), embedder=FakeEmbedder(), sampling=sampling).score(sample)
        for asking in ("together", "one_by_one")
    )
    assert together.value == alone.value
    assert (together.value == 0.0) is ("know" in response)
    assert together.verdicts == alone.verdicts


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_the_wrong_number_of_questions_is_no_smaller_n(count):
    outcome = ResponseRelevancy(llm=judge(*[False] * count), embedder=FakeEmbedder()).score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert f"{count} questions where 3" in outcome.detail
    assert (outcome.usage.llm_calls, outcome.usage.embed_calls) == (2, 0)


def test_only_the_failed_draw_is_asked_again():
    said = []

    def reply(request):
        said.append(request.sample_index)
        if said.count(request.sample_index) == 1 and request.sample_index == 1:
            return "no"
        return {"questions": [{"question": "q", "noncommittal": False}]}

    metric = ResponseRelevancy(llm=FakeLLM(reply), embedder=FakeEmbedder(), sampling="n_calls")
    assert metric.score(SAMPLE).usage.llm_calls == 4
    assert sorted(said) == [0, 1, 1, 2]


def test_tokens_are_added_up_and_unknown_stays_unknown():
    def usage(*counts):
        replies = iter(counts)

        def reply(request):
            return LLMReply('{"questions": [{"question": "q", "noncommittal": false}]}', *next(replies))

        metric = ResponseRelevancy(llm=FakeLLM(reply), embedder=FakeEmbedder(), sampling="n_calls", strictness=2)
        return metric.score(SAMPLE).usage

    known = usage((10, 3), (11, 4))
    assert (known.input_tokens, known.output_tokens) == (21, 7)
    half = usage((10, 3), (None, 4))
    assert (half.input_tokens, half.output_tokens) == (None, 7)


@pytest.mark.parametrize(
    ("first", "last", "p"),
    [
        (0.9, 0.9, 0.9),
        (0.9, 0.5, 0.75),
        (0.9, 0.1, 0.5),
        (0.2, 0.5, 1 / 3),
        (1.0, 0.0, 0.5),
        (1.0, 0.5, 1.0),
        (0.0, 0.9, 0.0),
    ],
)
def test_the_mean_of_the_log_odds_of_both_orders_decides(first, last, p):
    def probability(request):
        refused = first if request.user.startswith("<question") else last
        return {"refused": refused, "answered": 1 - refused}

    free, evasive = script(questions={"questions": ["q"]}), graded(probability)
    llm = FakeLLM(lambda r: evasive(r) if r.choices else free(r), asking="one_by_one")
    outcome = ResponseRelevancy(llm=llm, embedder=Placed(at(0)), strictness=1).score(SAMPLE)
    assert outcome.verdicts[0].probability == pytest.approx(1 - p)
    assert outcome.breakdown["noncommittal"] == float(p > 0.5 + 1e-9)


@pytest.mark.parametrize(("first", "last"), [("refused", "answered"), ("answered", "refused"), ("refused", "refused")])
def test_without_probabilities_a_refusal_is_one_in_both_orders(first, last):
    def reply(request):
        if not request.choices:
            return {"questions": ["q"]}
        return first if request.user.startswith("<question") else last

    llm = FakeLLM(reply, asking="one_by_one")
    outcome = ResponseRelevancy(llm=llm, embedder=Placed(at(0)), strictness=1).score(SAMPLE)
    assert outcome.breakdown["noncommittal"] == float(first == last == "refused")


def test_the_two_steps_one_by_one_go_out_in_one_round():
    llm = FakeLLM(truth, asking="one_by_one")
    metric = ResponseRelevancy(llm=llm, embedder=FakeEmbedder())
    first = next(metric.flow(SAMPLE))
    assert [step(request) for request in first] == ["questions", "noncommittal", "noncommittal"]


TWO = Sample(user_input="When was Emma written? Who printed Emma?", response="It was written in 1815.")


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_the_parts_of_the_question_stand_beside_the_score(asking):
    llm = FakeLLM(truth, asking=asking)
    plain = ResponseRelevancy(llm=llm, embedder=FakeEmbedder())
    metric = dataclasses.replace(plain, parts=True)
    outcome, before = metric.score(TWO), plain.score(TWO)
    assert outcome.value == before.value, "they do not enter the score"
    assert outcome.breakdown == before.breakdown | {"parts": 0.5}
    assert outcome.verdicts[: len(before.verdicts)] == before.verdicts
    found = [(v.id, v.kind, v.text, v.verdict, v.probability) for v in outcome.verdicts[len(before.verdicts) :]]
    assert found == [
        ("1", "part", "When was Emma written?", "yes", None),
        ("2", "part", "Who printed Emma?", "no", None),
    ]
    assert outcome.usage.llm_calls - before.usage.llm_calls == (2 if asking == "together" else 3)


def test_the_parts_take_no_round_more():
    _, rounds = drive(ResponseRelevancy(llm=FakeLLM(truth), embedder=FakeEmbedder(), parts=True), TWO)
    assert [len(round_) for round_ in rounds] == [2, 2]


def test_whoever_splits_the_question_does_not_see_the_response():
    llm = FakeLLM(truth)
    ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), parts=True).score(TWO)
    (split,) = [request for request in llm.requests if step(request) == "parts"]
    assert "1815" not in split.user
    assert "in the language of the user's question" in split.system


def test_probabilities_of_the_parts():
    odds = {"When?": 0.9, "Who?": 0.2}
    graded_parts = graded(lambda request: {"yes": (p := odds[fenced(request)[0]["question"]]), "no": 1 - p})
    evasive = graded(lambda request: {"refused": 0.1, "answered": 0.9})
    free = script(questions={"questions": ["q"]}, parts={"parts": ["When?", "Who?"]})

    def reply(request):
        return (
            free(request)
            if not request.choices
            else (graded_parts if step(request) == "answered" else evasive)(request)
        )

    llm = FakeLLM(reply, asking="one_by_one")
    outcome = ResponseRelevancy(llm=llm, embedder=Placed(at(0)), strictness=1, parts=True).score(SAMPLE)
    assert outcome.breakdown["parts"] == 0.5
    assert outcome.breakdown["parts_expected"] == pytest.approx(0.55)
    assert [v.probability for v in outcome.verdicts if v.kind == "part"] == pytest.approx([0.9, 0.2])


@pytest.mark.parametrize("parts", [[], [" "], ["When?", ""]])
def test_no_part_or_a_blank_one_is_no_reply(parts):
    def reply(request):
        return {"parts": parts} if step(request) == "parts" else truth(request)

    outcome = ResponseRelevancy(llm=FakeLLM(reply), embedder=FakeEmbedder(), parts=True).score(TWO)
    assert outcome.reason == "judge_unparseable"
    assert "parts is empty or one of them is blank" in outcome.detail


def test_a_part_said_twice_is_asked_once():
    def reply(request):
        return {"parts": ["Who?", "Who? "]} if step(request) == "parts" else truth(request)

    outcome = ResponseRelevancy(llm=FakeLLM(reply), embedder=FakeEmbedder(), parts=True).score(TWO)
    assert [v.text for v in outcome.verdicts if v.kind == "part"] == ["Who?"]


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"strictness": 0}, ValueError, "strictness"),
        ({"sampling": "n"}, ValueError, "sampling"),
        ({"parts": "yes"}, ValueError, "parts"),
        ({"noncommittal": "some"}, ValueError, "noncommittal"),
        ({"embedder": None}, TypeError, "embedder"),
        ({"embedder": judge(False)}, TypeError, "embedder"),
        ({"threshold": 1.1}, ValueError, "threshold"),
        ({"threshold": -1.1}, ValueError, "threshold"),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_name(options, error, named):
    with pytest.raises(error, match=named):
        ResponseRelevancy(**({"llm": judge(False), "embedder": FakeEmbedder()} | options))
