"""The prompts of each metric, held to its version: outcomes of different prompts must not pass for the same.

When a test here fails, a prompt has changed. If that was meant, raise the metric's `version` and put the new
version and digest (the failing test prints them) into `PINNED`, in place of the old ones; if only the version
was raised, put it in. If it was not meant, put the prompt back.
"""

import dataclasses
import hashlib
import json

import pytest

from ragstone import (
    AlignmentCoverage,
    CitationSupport,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    Criterion,
    FactualCorrectness,
    Faithfulness,
    LLMRequest,
    ResponseCompleteness,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.metrics.names import metric_class, metric_names
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import all_metrics, drive, truth  # noqa: TID252

PINNED = {
    "summarization_score": ("3", "265af9a693c49bc3"),
    "alignment_coverage": ("4", "3d692b9c9fb84dbb"),
    "response_relevancy": ("6", "57f347eb3f8b93e0"),
    "response_completeness": ("3", "bb1ae8070637b74b"),
    "faithfulness": ("4", "a232be3e3377b74a"),
    "context_relevancy": ("5", "562de502e0f0f87e"),
    "context_precision": ("1", "c003e05a058882c8"),
    "context_recall": ("2", "2062a644ced12c61"),
    "factual_correctness": ("2", "fc621026d96591b7"),
    "citation_support": ("3", "991b07abe6e51b70"),
    "Criterion": ("1", "29a6494da6b2db5e"),
}
# The same, of a question that follows a conversation: with what it is asked as.
PINNED_WITH_HISTORY = {
    "response_relevancy": ("6", "7bb5621839077236"),
    "response_completeness": ("3", "f314bb051ee7a5f8"),
    "context_relevancy": ("5", "d6719828e47959e6"),
    "context_precision": ("1", "7be3d13321dcdffb"),
}

SAMPLE = Sample(
    user_input="Emma is a novel. Jane Austen wrote it. Who wrote Emma?",
    retrieved_contexts=["Emma is a novel. Jane Austen wrote Emma.", "It came out in 1815."],
    response="Emma is a novel. It came out in 1815.",
    reference="Emma is a novel. It is long.",
)
CITING = SAMPLE.model_copy(update={"response": "Emma is a novel [1]. It came out in 1815 [1][2]."})
GIVEN = ("Is Emma a novel?", "Did it come out in 1815?")
# Every option that may show in a prompt, each alone.
OPTIONS = {
    SummarizationScore: [{}, {"questions": GIVEN}],
    AlignmentCoverage: [
        {},
        {"assessment_questions": GIVEN},
        {"source": "retrieved_contexts"},
        {"n_questions": 2},
        {"coverage_rule": "agreement"},
    ],
    ResponseRelevancy: [
        {},
        {"strictness": 1},
        {"sampling": "n_calls"},
        *({"noncommittal": rule} for rule in ("any", "majority", "off")),
    ],
    ResponseCompleteness: [{}],
    Faithfulness: [{}],
    ContextRelevancy: [{}, {"granularity": "chunk"}, {"max_input_tokens": 230}],
    ContextPrecision: [{}, {"against": "response"}],
    ContextRecall: [{}],
    FactualCorrectness: [{}],
    CitationSupport: [{}],
    Criterion: [
        {"name": "polite", "question": "Is it so?"},
        {
            "name": "polite",
            "question": "Is it so?",
            "choices": ("yes", "so_so", "no"),
            "sees": ("response", "reference"),
        },
    ],
}


def at_first_unreadable():
    """A truthful judge whose first answer to every prompt is no answer, so that the re-ask is seen too."""

    def reply(request):
        return truth(request) if "previous reply" in request.user else "pardon?"

    return reply


def requests_of(metric, sample):
    """Every request of the metric on the sample, by options and ways of asking, as plain data."""
    seen = []
    for asking in ("together", "one_by_one"):
        for options in OPTIONS[metric]:
            for reply in (truth, at_first_unreadable()):
                extra = {"embedder": FakeEmbedder()} if metric is ResponseRelevancy else {}
                _, rounds = drive(metric(llm=FakeLLM(reply), asking=asking, **options, **extra), sample)
                for request in (r for round_ in rounds for r in round_ if isinstance(r, LLMRequest)):
                    seen.append([getattr(request, name) for name in LLMRequest.__slots__])
    return seen


def digest(metric, sample=SAMPLE):
    """Sixteen hex digits of all that the judge may be asked of a sample."""
    return hashlib.sha256(json.dumps(requests_of(metric, sample)).encode()).hexdigest()[:16]


def name_of(metric):
    """The metric's name; a criterion's is its user's."""
    return "Criterion" if metric is Criterion else metric.name


@pytest.mark.parametrize("metric", OPTIONS, ids=lambda metric: metric.__name__)
def test_a_changed_prompt_has_a_changed_version(metric):
    version, pinned = PINNED[name_of(metric)]
    found = digest(metric, CITING if metric is CitationSupport else SAMPLE)
    assert (metric.version, found) == (version, pinned), (
        f"the prompts of {metric.__name__} are not those of its version {version!r}. Meant? Raise its `version` "
        f'(unless you just did) and put this into PINNED of {__file__}:\n    "{name_of(metric)}": ("VERSION", "{found}"),'
    )


@pytest.mark.parametrize("metric", [cls for cls in OPTIONS if cls.follows_history], ids=lambda metric: metric.__name__)
def test_so_has_a_changed_prompt_on_history(metric):
    history = [{"role": "user", "content": "What is Emma?"}, {"role": "assistant", "content": "A novel."}]
    found = (metric.version, digest(metric, SAMPLE.model_copy(update={"history": Sample(history=history).history})))
    assert found == PINNED_WITH_HISTORY[metric.name]


def test_no_metric_and_no_option_is_forgotten():
    """A new option must be tried here, or be named as one that shows in no prompt."""
    asking = {name for name in metric_names() if metric_class(name).needs_llm}
    assert {name_of(metric) for metric in OPTIONS} == {*asking, "Criterion"}
    assert {metric.name for metric in all_metrics(truth)} == {*asking, "polite"}
    shows_not = {
        "llm", "writer", "parts", "threshold", "asking", "scoring", "embedder", "language", "splitter",
        "length_penalty", "coeff", "max_input_tokens", "max_characters", "instructions", "marks",
        "reason",  # its own prompt has tests/core/test_reason.py
    }  # fmt: skip
    for metric, options in OPTIONS.items():
        tried = {name for option in options for name in option}
        assert {field.name for field in dataclasses.fields(metric)} <= tried | shows_not
