"""Whatever a judge may say: one re-ask that says what was wrong, then Unscored, never an exception."""

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMReply,
    LLMRequest,
    ResponseRelevancy,
    Sample,
    Score,
    SummarizationScore,
    Unscored,
)
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import drive, filled, obliging, step, truth

SAMPLE = Sample(
    user_input="Alpha is so. Beta is so?", retrieved_contexts=["Alpha is so. Beta is so."], response="Alpha is so."
)
TOGETHER = {
    "summarization_score.questions": SummarizationScore,
    "summarization_score.answers": SummarizationScore,
    "alignment_coverage.claims": AlignmentCoverage,
    "alignment_coverage.questions": AlignmentCoverage,
    "alignment_coverage.verdicts": AlignmentCoverage,
    "alignment_coverage.source_answers": AlignmentCoverage,
    "alignment_coverage.summary_answers": AlignmentCoverage,
    "response_relevancy.questions": ResponseRelevancy,
    "context_relevancy.sentences": ContextRelevancy,
    "context_relevancy.copies": lambda **options: ContextRelevancy(selection="verbatim", **options),
}
ALONE = {
    "summarization_score.answers": lambda **options: SummarizationScore(
        questions=["Does it say: Alpha is so."], **options
    ),
    "alignment_coverage.verdict": AlignmentCoverage,
    "alignment_coverage.source_answers": lambda **options: AlignmentCoverage(
        assessment_questions=["Does it say: Alpha is so."], **options
    ),
    "alignment_coverage.summary_answers": lambda **options: AlignmentCoverage(
        assessment_questions=["Does it say: Alpha is so."], **options
    ),
    "response_relevancy.questions": ResponseRelevancy,
    "response_relevancy.noncommittal": ResponseRelevancy,
    "context_relevancy.sentence": ContextRelevancy,
}
STEPS = [*((task, "together") for task in TOGETHER), *((task, "one_by_one") for task in ALONE)]


def build(task, asking, reply):
    """A metric that has this step, with a judge that answers it by `reply` and the others truthfully."""
    make = (TOGETHER if asking == "together" else ALONE)[task]
    llm = FakeLLM(lambda request: reply(request) if request.task == task else truth(request), asking=asking)
    extra = {"embedder": FakeEmbedder()} if task.startswith("response") else {}
    return make(llm=llm, **extra)


def good(request):
    said = truth(request)
    return said if isinstance(said, str) else json.dumps(said)


def of(request, change):
    """A good reply changed: no such reply to this step when it comes back as it was."""
    value = json.loads(good(request)) if not request.choices else good(request)
    return change(value, request)


def items(value):
    """The list or object of the reply's one field."""
    (name,) = value
    return name, value[name]


def fewer(value, request):
    name, inside = items(value)
    if isinstance(inside, dict):
        return {name: dict(list(inside.items())[:-1])}
    if request.schema["properties"][name]["minItems"]:
        return {name: inside[:-1]}
    return None


def more(value, request):
    name, inside = items(value)
    if isinstance(inside, dict):
        return {name: inside | {"99": next(iter(inside.values()))}}
    most = (
        request.schema["properties"][name].get("maxItems") if step(request) != "questions" or name != "items" else None
    )
    return {name: (inside or [filled(request.schema["properties"][name]["items"])]) * (most + 1)} if most else None


def unknown_id(value, request):
    name, inside = items(value)
    if isinstance(inside, dict):
        return {name: {(key if i else "77"): v for i, (key, v) in enumerate(inside.items())}}
    return {name: [99]} if name == "ids" else None


def twice(value, request):
    name, inside = items(value)
    if isinstance(inside, dict):
        one = json.dumps(next(iter(inside.values())))
        return f'{{"{name}": {{"1": {one}, "1": {one}}}}}'
    if name == "ids":
        return {name: [1, 1]}
    return f'{{"{name}": {json.dumps(inside)}, "{name}": {json.dumps(inside)}}}'


def other_word(word):
    def change(value, request):
        name, inside = items(value)
        if not isinstance(inside, dict):
            return None
        first = next(iter(inside.values()))
        return {name: {key: first | {"verdict": word} if isinstance(first, dict) else word for key in inside}}

    return change


def wrong_evidence(number):
    def change(value, request):
        if step(request) != "verdicts":
            return None
        return {"verdicts": {key: v | {"evidence": [number]} for key, v in value["verdicts"].items()}}

    return change


def bool_as_text(value, request):
    if step(request) == "questions" and "noncommittal" in json.dumps(value):
        return {"questions": [q | {"noncommittal": "false"} for q in value["questions"]]}
    return None


def bool_as_number(value, request):
    if step(request) == "questions" and "noncommittal" in json.dumps(value):
        return {"questions": [q | {"noncommittal": 0} for q in value["questions"]]}
    return {"ids": [True]} if "ids" in value else None


def blank_item(value, request):
    if step(request) not in ("questions", "claims"):
        return None
    return json.loads(
        json.dumps(value).replace("Alpha is so.", " ").replace("Does it say: ", " ").replace(" Question 0?", " ")
    )


def as_text(number):
    def change(value, request):
        name, inside = items(value)
        if isinstance(inside, list):
            return f'{{"{name}": [{number}]}}'
        return f'{{"{name}": {{"1": {number}}}}}'

    return change


def extra_field(value, request):
    return value | {"score": 1.0}


def stop_short(value, request):
    return json.dumps(value)[:-1]


FREE = {
    "empty": "",
    "blank": " \n\t",
    "refusal": "I'm sorry, but I cannot help with that.",
    "null": "null",
    "a number": "1",
    "a bare list": "[]",
    "an empty object": "{}",
    "a string": '"yes, it is"',
    "NaN": "NaN",
    "deep": "[" * 3000,
    "deep and closed": "[" * 3000 + "]" * 3000,
    "deep objects": '{"a":' * 3000 + "1" + "}" * 3000,
    "HTML": "<html><body>502 Bad Gateway</body></html>",
    "half a character": "\ud83d",
    "NUL": "\x00",
    "a BOM": "\ufeff{}",
}
FROM_GOOD = {
    "prose in front": lambda value, request: f"Here it is: {json.dumps(value)}",
    "prose behind": lambda value, request: f"{json.dumps(value)}\nHope that helps!",
    "two objects": lambda value, request: f"{json.dumps(value)} {json.dumps(value)}",
    "two lines": lambda value, request: f"{json.dumps(value)}\n{json.dumps(value)}",
    "fenced among prose": lambda value, request: f"Here:\n```json\n{json.dumps(value)}\n```",
    "prose behind thoughts": lambda value, request: f"Hm.</think>Here it is: {json.dumps(value)}",
    "truncated": stop_short,
    "truncated early": lambda value, request: json.dumps(value)[:9],
    "trailing comma": lambda value, request: json.dumps(value)[:-1] + ",}",
    "single quotes": lambda value, request: str(value),
    "within a list": lambda value, request: [value],
    "as a string": lambda value, request: json.dumps(json.dumps(value)),
    "another name": lambda value, request: {"result": items(value)[1]},
    "an extra field": extra_field,
    "a score": lambda value, request: {"score": 1.0},
    "fewer": fewer,
    "more": more,
    "unknown id": unknown_id,
    "twice": twice,
    "out of the vocabulary": other_word("maybe"),
    "almost in the vocabulary": other_word("Yes"),
    "with a full stop": other_word("yes."),
    "a bool for a word": other_word(True),
    "null for a word": other_word(None),
    "evidence 0": wrong_evidence(0),
    "evidence beyond": wrong_evidence(99),
    "evidence as text": wrong_evidence("1"),
    "evidence of a fraction": wrong_evidence(1.5),
    "huge evidence": wrong_evidence(10**30),
    "a bool as text": bool_as_text,
    "a bool as a number": bool_as_number,
    "a blank item": blank_item,
    "NaN inside": as_text("NaN"),
    "Infinity inside": as_text("Infinity"),
    "1e400 inside": as_text("1e400"),
    "a huge number inside": as_text("9" * 4000),
    "a huger number inside": as_text("9" * 5000),
    "a fraction inside": as_text("1.0"),
    "null inside": as_text("null"),
    "deep inside": as_text("[" * 900 + "]" * 900),
    "NUL in a key": lambda value, request: value | {"a\x00b\nc": 1},
    "half a character in a key": lambda value, request: '{"\\ud800": 1}',
}
CHOICES = {
    "extra words": lambda value, request: f"{value}, because it says so",
    "a label": lambda value, request: f"Answer: {value}",
    "both": lambda value, request: "\n".join(request.choices),
    "as an object": lambda value, request: {"answer": value},
    "as a list": lambda value, request: [value],
    "another word": lambda value, request: "perhaps",
    "a bool": lambda value, request: "true",
    "probabilities of other words": lambda value, request: LLMReply(value, probabilities={"maybe": 1.0}),
    "probabilities of some": lambda value, request: LLMReply(value, probabilities={value: 1.0}),
    "a probability above 1": lambda value, request: LLMReply(value, probabilities=dict.fromkeys(request.choices, 1.5)),
    "a probability of NaN": lambda value, request: LLMReply(
        value, probabilities=dict.fromkeys(request.choices, float("nan"))
    ),
}


def cases():
    for task, asking in STEPS:
        requests = []
        metric = build(task, asking, lambda request, kept=requests: (kept.append(request), good(request))[1])
        assert isinstance(metric.score(SAMPLE), Score), task
        for name, text in FREE.items():
            yield pytest.param(task, asking, lambda request, text=text: text, id=f"{task}-{asking}-{name}")
        changes = CHOICES if requests[0].choices else FROM_GOOD
        for name, change in changes.items():
            if of(requests[0], change) is not None:
                yield pytest.param(
                    task, asking, lambda request, change=change: of(request, change), id=f"{task}-{asking}-{name}"
                )


CASES = list(cases())


def test_every_kind_of_bad_reply_meets_a_step():
    met = {case.id.split("-", 2)[2] for case in CASES}
    assert met == {*FREE, *FROM_GOOD, *CHOICES}


@pytest.mark.parametrize("together", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("task", "asking", "bad"), CASES)
def test_a_bad_reply_is_asked_for_once_more_and_then_not_scored(task, asking, bad, together):
    metric = build(task, asking, bad)
    outcome = asyncio.run(metric.ascore(SAMPLE)) if together else metric.score(SAMPLE)
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "judge_unparseable"
    assert outcome.detail.startswith(f"{task}: ")
    assert "asked twice" in outcome.detail
    outcome.model_dump_json().encode()
    requests = metric.llm.requests
    assert outcome.usage.llm_calls == len(requests)
    again = "Your previous reply could not be used: "
    asked, repeated = ([r for r in requests if r.task == task and (again in r.user) is b] for b in (False, True))
    assert len(repeated) == len(asked) >= 1
    for request in repeated:
        first = next(r for r in asked if request.user.startswith(r.user))
        behind = request.user[len(first.user) :]
        assert (request.system, request.schema, request.choices) == (first.system, first.schema, first.choices)
        what = behind.split(again)[1].split(". Reply again")[0]
        assert what
        assert what in outcome.detail
        assert "\n" not in what
        assert len(what) <= 300
        request.user.encode()
        assert "\x00" not in request.user


@pytest.mark.parametrize(("task", "asking", "bad"), CASES[::7])
def test_a_good_second_reply_scores_like_a_good_first(task, asking, bad):
    said = Counter()

    def at_first(request):
        key = request.user.split("\n\nYour previous reply")[0]
        said[key] += 1
        return bad(request) if said[key] == 1 else good(request)

    outcome, plain = build(task, asking, at_first).score(SAMPLE), build(task, asking, good).score(SAMPLE)
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.breakdown, outcome.verdicts) == (plain.value, plain.breakdown, plain.verdicts)
    assert outcome.usage.llm_calls == plain.usage.llm_calls + len(said)
    assert set(said.values()) == {2}


def test_tokens_of_both_calls_count():
    metric = build("context_relevancy.sentences", "together", lambda request: LLMReply("no", 100, 7))
    usage = metric.score(SAMPLE).usage
    assert (usage.llm_calls, usage.input_tokens, usage.output_tokens) == (2, 200, 14)


def test_only_the_part_that_failed_is_asked_again():
    metric = build("alignment_coverage.claims", "together", lambda request: "oops")
    metric.score(SAMPLE)
    assert Counter(step(r) for r in metric.llm.requests) == {"claims": 2, "questions": 1}


def test_a_reply_bare_but_with_white_space_around_is_fine():
    metric = build("context_relevancy.sentences", "together", lambda request: f" \n{good(request)}\n\n")
    assert isinstance(metric.score(SAMPLE), Score)


@pytest.mark.parametrize("said", ["refused", " refused\n", '"refused"', ' "refused" '])
def test_a_choice_may_be_bare_or_json(said):
    metric = build("response_relevancy.noncommittal", "one_by_one", lambda request: said)
    assert metric.score(SAMPLE).value == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["1", "2", "yes"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["ids", "answers", "verdicts", "questions", "claims", "items", "sentences", "1", "2"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
SAID = st.one_of(
    st.text(st.characters(codec=None, categories=None), max_size=60),
    JSON.map(json.dumps),
    JSON.map(lambda value: json.dumps(value, ensure_ascii=False)),
    st.sampled_from([*FREE.values(), "yes", "no", "supported", '{"ids": [1]}', '{"answers": {"1": "yes"}}']),
)


@settings(max_examples=150, deadline=None)
@given(text=SAID, where=st.sampled_from(STEPS))
def test_any_text_as_a_reply_gives_an_outcome_in_at_most_two_calls(text, where):
    metric = build(*where, lambda request: text)
    outcome = metric.score(SAMPLE)
    assert isinstance(outcome, (Score, Unscored))
    outcome.model_dump_json().encode()
    if isinstance(outcome, Unscored):
        assert outcome.reason in ("judge_unparseable", "undefined")
    per_ask = Counter(
        request.user.split("\n\nYour previous reply")[0] + request.task for request in metric.llm.requests
    )
    draws = Counter(r.user + r.task for r in metric.llm.requests if "\n\nYour previous reply" not in r.user)
    assert all(count <= 2 * draws[ask] for ask, count in per_ask.items())


@settings(max_examples=100, deadline=None)
@given(data=st.data(), where=st.sampled_from(STEPS))
def test_any_words_in_a_reply_of_the_right_form(data, where):
    """Free text in a well-formed reply (claims, questions, copies) may be anything at all."""
    words = st.text(st.characters(codec=None, categories=None), max_size=30)

    def free(schema):
        if "enum" in schema:
            return data.draw(st.sampled_from(schema["enum"]))
        if schema["type"] == "object":
            return {key: free(inner) for key, inner in schema["properties"].items()}
        if schema["type"] == "array":
            least = schema["minItems"]
            size = data.draw(st.integers(least, min(schema.get("maxItems", 4), least + 3)))
            return [free(schema["items"]) for _ in range(size)]
        if schema["type"] == "integer":
            return data.draw(st.integers(schema["minimum"], schema["maximum"]))
        return data.draw({"string": words, "boolean": st.booleans()}[schema["type"]])

    def reply(request: LLMRequest):
        return free(request.schema)

    metric = build(*where, reply)
    outcome, _ = drive(metric, SAMPLE)  # in this thread: hypothesis draws in no other
    assert isinstance(outcome, (Score, Unscored))
    outcome.model_dump_json().encode()
    for request in metric.llm.requests:
        request.user.encode()


def test_a_judge_that_lists_without_end_is_stopped_by_the_budget():
    """Ten thousand claims do not fit the next prompt: the outcome says so."""

    def reply(request):
        if step(request) == "claims":
            return {"claims": [f"Claim number {i}." for i in range(100_000)]}
        return obliging(request)

    outcome = AlignmentCoverage(llm=FakeLLM(reply)).score(SAMPLE)
    assert outcome.reason == "over_budget"
    assert "claims" in outcome.detail


def test_probabilities_of_a_reply_that_is_no_choice_are_not_looked_at():
    metric = build("context_relevancy.sentences", "together", lambda r: LLMReply(good(r), probabilities={"x": 7.0}))
    assert isinstance(metric.score(SAMPLE), Score)
