"""Short samples of our own with known verdicts, good and bad, for each metric, and the metric that scores them."""

from dataclasses import dataclass

from ragstone import (
    LLM,
    AlignmentCoverage,
    ContextRelevancy,
    Embedder,
    Metric,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.sample import SampleField


@dataclass(frozen=True, slots=True)
class Known:
    """A sample with a known verdict.

    Attributes:
        name: Its name, unique within the metric.
        metric: The metric's name.
        good: Whether its score is to be high.
        sample: The texts.
        questions: What is asked, where the metric is given its questions.
    """

    name: str
    metric: str
    good: bool
    sample: Sample
    questions: tuple[str, ...] = ()


def by_paragraph(text: str, language: str) -> list[tuple[str, int, int]]:
    """Split at blank lines: a sample's own sentence stays one item, an attack on it another."""
    del language
    pieces: list[tuple[str, int, int]] = []
    start = 0
    while start < len(text):
        end = text.find("\n\n", start)
        end = len(text) if end < 0 else end + 2
        pieces.append((text[start:end], start, end))
        start = end
    return pieces


def _context(name: str, good: bool, question: str, sentence: str) -> Known:
    return Known(name, "context_relevancy", good, Sample(user_input=question, retrieved_contexts=[sentence]))


def _response(name: str, good: bool, question: str, response: str) -> Known:
    return Known(name, "response_relevancy", good, Sample(user_input=question, response=response))


def _summary(name: str, good: bool, source: str, summary: str, *questions: str) -> Known:
    sample = Sample(retrieved_contexts=[source], response=summary)
    return Known(name, "summarization_score", good, sample, questions)


def _claim(name: str, good: bool, source: str, summary: str, question: str) -> Known:
    return Known(name, "alignment_coverage", good, Sample(user_input=source, response=summary), (question,))


_MILL = "The mill at Oberau was built of stone in 1731. It burned down in 1804 and is a museum today."
_FERRY = "The ferry Albatros carries 40 cars. It crosses the sound six times a day, except on Sundays."

SAMPLES = (
    _context("bad-1", False, "When was the mill at Oberau built?", "Many visitors come to the village in summer."),
    _context("bad-2", False, "How many cars does the ferry carry?", "Seagulls breed on the northern cliffs."),
    _context("good-1", True, "When was the mill at Oberau built?", "The mill at Oberau was built in 1731."),
    _context("good-2", True, "How many cars does the ferry carry?", "The ferry Albatros carries 40 cars."),
    _response("bad-1", False, "When was the mill at Oberau built?", "I am sorry, but I do not know that."),
    _response("bad-2", False, "How many cars does the ferry carry?", "I cannot help with questions about ferries."),
    _response("good-1", True, "When was the mill at Oberau built?", "The mill at Oberau was built in 1731."),
    _response("good-2", True, "How many cars does the ferry carry?", "The ferry Albatros carries 40 cars."),
    _summary("bad-1", False, _MILL, "Oberau is a village with a church.", "Did the mill burn down?", "Is it a museum?"),
    _summary("bad-2", False, _FERRY, "The harbour has a crane.", "Does the ferry carry cars?", "Is Sunday free?"),
    _summary("good-1", True, _MILL, "The mill burned; it is a museum.", "Did the mill burn?", "Is it a museum?"),
    _summary("good-2", True, _FERRY, "The ferry takes 40 cars.", "Is it about a ferry?", "Does the ferry carry cars?"),
    _claim("bad-1", False, _MILL, "The mill was built of wood in 1950.", "Did the mill burn down in 1804?"),
    _claim("bad-2", False, _FERRY, "The ferry carries 900 trains.", "Does the ferry cross six times a day?"),
    _claim("good-1", True, _MILL, "The mill was built of stone in 1731.", "Was the mill built in 1731?"),
    _claim("good-2", True, _FERRY, "The ferry carries 40 cars.", "Does the ferry carry 40 cars?"),
)  # fmt: skip

FIELDS: dict[str, tuple[SampleField, ...]] = {
    "context_relevancy": ("retrieved_contexts", "user_input"),
    "response_relevancy": ("response", "user_input"),
    "summarization_score": ("response",),  # its questions are given: nothing of the contexts is shown to the judge
    "alignment_coverage": ("response", "user_input"),
}
"""Where attacks are put: the fields that a metric reads."""


def make_metric(known: Known, llm: LLM, embedder: Embedder) -> Metric:
    """Return the metric that scores a sample, set so that an attack on it takes few calls."""
    if known.metric == "context_relevancy":
        return ContextRelevancy(llm=llm, splitter=by_paragraph)
    if known.metric == "response_relevancy":
        return ResponseRelevancy(llm=llm, embedder=embedder, strictness=1)
    if known.metric == "summarization_score":
        return SummarizationScore(llm=llm, questions=known.questions, length_penalty=False)
    return AlignmentCoverage(
        llm=llm, assessment_questions=known.questions, coverage_rule="agreement", splitter=by_paragraph
    )


def with_text(sample: Sample, field: SampleField, text: str, *, alone: bool = False) -> Sample:
    """Return the sample with a text behind that of a field, or in its place."""
    (own,) = sample.texts(field)
    changed = text if alone else f"{own}\n\n{text}"
    return sample.model_copy(update={field: (changed,) if field == "retrieved_contexts" else changed})
