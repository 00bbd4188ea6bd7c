"""AlignmentCoverage: whether a summary is true to its original and covers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ragstone.judging import TEXT, Answer, CannotScore, Flow, both, distinct, json_form, listing, record
from ragstone.metrics.asking import Details, ItemDetails, ask_items
from ragstone.metrics.base import ItemKind, ItemOrigin
from ragstone.metrics.claims import IS_SUPPORTED, SUPPORT_EXAMPLES, SplittingMetric
from ragstone.metrics.values import expected_share, least, share_of, verdicts_of
from ragstone.options import Count, Texts
from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample, SampleField

CoverageRule = Literal["both_yes", "agreement"]
_ANSWERS = ("yes", "no", "cannot_tell")

_CLAIMS = (
    "List the factual claims that a summary makes: every one, each short and understandable on its own, in the "
    "language of the summary. Take them as they are, true or not; add none."
)
_QUESTIONS = (
    "You test whether readers know the important facts of a text. Write {n} different yes/no questions on its facts "
    "(not on its wording), one fact each, so that yes is the right answer to every one. Write in the language of the "
    "text."
)
_VERDICTS = (
    "Check claims against an original. supported: the original says it or it plainly follows. contradicted: the "
    "original says otherwise. not_in_source: neither."
)
_ANSWER = (
    "Answer closed questions from a text alone. yes or no: what the text says or plainly implies. cannot_tell: the "
    "text does not settle it."
)
_OF_SOURCE, _OF_SUMMARY = ItemDetails(alone="source_answer"), ItemDetails(alone="summary_answer")
_ANSWER_ALONE = "Answer the question from the text alone; cannot_tell: the text does not settle it."


def coverage_counts(pairs: Sequence[tuple[str, str]], rule: CoverageRule) -> tuple[int, int]:
    """Return how many questions are covered, of how many that count, from the answers on original and summary.

    Example:
        >>> coverage_counts([("yes", "yes"), ("yes", "no"), ("no", "no")], "both_yes")
        (1, 2)
        >>> coverage_counts([("yes", "yes"), ("yes", "no"), ("no", "no")], "agreement")
        (2, 3)
    """
    if rule == "agreement":
        return sum(a == b for a, b in pairs), len(pairs)
    return list(pairs).count(("yes", "yes")), sum(a == "yes" for a, _ in pairs)


def lower(alignment: float | None, coverage: float | None) -> float | None:
    """Return the lower of the two; 0 where one of them is, whatever the other; None where it cannot be told.

    Example:
        >>> lower(0.5, 1.0), lower(0.0, None), lower(0.5, None)
        (0.5, 0.0, None)
    """
    known = [share for share in (alignment, coverage) if share is not None]
    return min(known) if len(known) > 1 or 0.0 in known else None


def expected_coverage(on_source: Sequence[Answer], on_summary: Sequence[Answer], rule: CoverageRule) -> float | None:
    """Return coverage with probabilities in place of answers; None where one is missing or it is 0 of 0.

    With P and Q the probabilities on the original and on the summary: "both_yes" is sum P(yes) Q(yes) / sum
    P(yes), "agreement" is the mean over questions of sum over answers a of P(a) Q(a).
    """
    words = ("yes",) if rule == "both_yes" else _ANSWERS
    share = weight = 0.0
    for a, b in zip(on_source, on_summary, strict=True):
        if a.probabilities is None or b.probabilities is None:
            return None
        share += sum(a.probabilities[word] * b.probabilities[word] for word in words)
        weight += a.probabilities["yes"] if rule == "both_yes" else 1.0
    return min(1.0, share / weight) if weight else None


@dataclass(frozen=True, kw_only=True)
class AlignmentCoverage(SplittingMetric):
    """The lower of a summary's truth to its original and its coverage of it; higher is better.

    The original is `user_input` (or `retrieved_contexts` joined by newlines), the summary is `response`. The judge
    lists the summary's claims and, unless they are given, makes `n_questions` closed questions on the original. Each
    claim is checked against the original itself, and each question is answered on the original and on the summary.
    Asked one by one, the claims are the summary's sentences.

        alignment = claims supported / claims
        coverage  = questions answered yes on both / questions answered yes on the original    ("both_yes")
                  = questions answered the same on both / questions                            ("agreement")
        score = min(alignment, coverage)      (0 where alignment is, whatever coverage is)

    Args:
        llm: The judge. See `Metric` for the options that all metrics share; `threshold` is 0.5 by default.
        source: The field that holds the original, "user_input" or "retrieved_contexts". None: "user_input", unless an
            integration finds the original elsewhere.
        assessment_questions: Closed questions to use instead of generated ones.
        n_questions: How many to generate, at least 1.
        coverage_rule: "both_yes" (DeepEval's code) or "agreement" (one page of its documentation).
        language: Of the texts, for splitting them; None: by their script.
        splitter: Another sentence splitter.

    Returns:
        A score within [0, 1]. Breakdown: `alignment`, `coverage`, and where there are probabilities
        `alignment_expected`, `coverage_expected` and `alignment_least` (that of the least supported claim). Verdicts:
        each claim with the original's sentences that show it (asked one by one with its place in the summary), and
        each question's "source_answer" and "summary_answer".
        `Unscored("undefined")` when there are no claims or, counted, the original supports one and answers no question
        with yes (0 of 0).

    Source:
        DeepEval's SummarizationMetric; here claims are judged against the original, not against an extract of
        it, and a question counts by its answer, not by whether it could be answered.

    Example:
        >>> from ragstone.testing import FakeLLM, by_step
        >>> judge = FakeLLM(by_step(
        ...     claims={"claims": ["Emma is a novel."]},
        ...     verdicts={"verdicts": {"1": {"evidence": [1], "verdict": "supported"}}},
        ...     source_answers={"answers": {"1": "yes"}},
        ...     summary_answers={"answers": {"1": "no"}},
        ... ))
        >>> metric = AlignmentCoverage(llm=judge, assessment_questions=["Did Jane Austen write Emma?"])
        >>> metric.score(Sample(user_input="Emma is a novel by Jane Austen.", response="Emma is a novel.")).breakdown
        {'alignment': 1.0, 'coverage': 0.0}
    """

    name: ClassVar[str] = "alignment_coverage"
    asks: ClassVar[str] = "Is the summary true to its original, and does it cover it?"
    costs: ClassVar[Mapping[str, str]] = {
        "claim": "the original does not support a claim of the summary",
        "summary_answer": "the summary and the original answer a question differently",
    }
    version: ClassVar[str] = "4"
    required_fields: ClassVar[Sequence[SampleField]] = ("user_input", "response")
    has_expected: ClassVar[bool] = True
    examples: ClassVar[Mapping[str, str]] = {"verdict": SUPPORT_EXAMPLES}
    prompts: ClassVar[Mapping[str, str]] = {
        "claims": _CLAIMS,
        "questions": _QUESTIONS,
        "verdicts": _VERDICTS,
        "verdict": IS_SUPPORTED,
        "source_answers": _ANSWER,
        "source_answer": _ANSWER_ALONE,
        "summary_answers": _ANSWER,
        "summary_answer": _ANSWER_ALONE,
    }

    source: Literal["user_input", "retrieved_contexts"] | None = None
    assessment_questions: Texts | None = None
    n_questions: Count = 5
    coverage_rule: CoverageRule = "both_yes"
    threshold: float | None = 0.5

    def own_facts(self) -> Mapping[str, object]:
        """The original's field is required."""
        return {"required_fields": (self.source_field, "response")}

    @property
    def source_field(self) -> SampleField:
        """The field that holds the original."""
        return self.source or "user_input"

    @property
    def needs_writer(self) -> bool:
        """Whether questions are to be written."""
        return self.assessment_questions is None

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The summary's claims, and each question twice: answered by the original, and by the summary."""
        origin: ItemOrigin = "judge" if self.assessment_questions is None else "given"
        return (
            self.claims_kind("claim", "original"),
            ItemKind("source_answer", "What does the original answer?", _ANSWERS, origin),
            ItemKind("summary_answer", "What does the summary answer?", _ANSWERS, origin),
        )

    @property
    def source_chosen(self) -> bool:
        """Whether `source` was named."""
        return self.source is not None

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the lower of alignment and coverage."""
        alignment = share_of(verdicts, "claim", "supported")
        answers = {
            kind: [v.verdict for v in verdicts if v.kind == kind] for kind in ("source_answer", "summary_answer")
        }
        covered, asked = coverage_counts(list(zip(*answers.values(), strict=True)), options["coverage_rule"])
        return lower(alignment, covered / asked if asked else None)

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        source = {"text": "\n".join(sample.texts(self.source_field))}
        claims, questions = yield from both(self.find_claims("summary", sample), self._questions(source))
        if not claims:
            raise CannotScore("undefined", "alignment: the judge found no claims in response (0 of 0)")
        summary = {"text": sample.response or ""}
        checks, (on_source, on_summary) = yield from both(
            self.check_claims(claims, "original", sample, self.source_field),
            both(
                ask_items(self, "source_answers", source, questions, _ANSWERS, details=_OF_SOURCE),
                ask_items(self, "summary_answers", summary, questions, _ANSWERS, details=_OF_SUMMARY),
            ),
        )
        rule = self.coverage_rule
        supported = sum(check.choice == "supported" for check in checks)
        breakdown = {"alignment": supported / len(claims)}
        pairs = [(a.choice, b.choice) for a, b in zip(on_source, on_summary, strict=True)]
        covered, asked = coverage_counts(pairs, rule)
        coverage = f"coverage: {self.source_field} answers none of the {len(questions)} questions with yes (0 of 0)"
        if asked:
            breakdown["coverage"] = covered / asked
            same = "answered yes on both" if rule == "both_yes" else "answered the same on both"
            coverage = f"{covered} of {asked} questions are {same}"
        by_judge = expected_share(checks, "supported"), expected_coverage(on_source, on_summary, rule)
        expected = lower(*by_judge)
        if by_judge[0] is not None and by_judge[1] is not None:
            breakdown |= {"alignment_expected": by_judge[0], "alignment_least": least(checks, "supported")}
            breakdown["coverage_expected"] = by_judge[1]
        uncovered = [a != b and (a == "yes" or rule == "agreement") for a, b in pairs]
        verdicts = [
            *verdicts_of("claim", [claim.text for claim in claims], checks, "supported"),
            *verdicts_of("source_answer", questions, on_source, "yes", [False] * len(questions)),
            *verdicts_of("summary_answer", questions, on_summary, "yes", uncovered),
        ]
        return self._score(
            self.value_of(verdicts, sample, {"coverage_rule": rule}),
            f"The original supports {supported} of {len(claims)} claims; {coverage}.",
            expected=expected,
            breakdown=breakdown,
            verdicts=verdicts,
        )

    def _questions(self, source: Mapping[str, str]) -> Flow[tuple[str, ...]]:
        n, given = self.n_questions, self.assessment_questions
        if given is not None:
            return tuple(given)
        return (
            yield from self.ask_json(
                "questions",
                source,
                f"Write {n} different yes/no questions on the facts of this text; the right answer to each is yes.",
                json_form(record(questions=listing(TEXT, n, n)), questions="QUESTION"),
                lambda value: distinct(value["questions"], "question"),
                Details(fill={"n": str(n)}, writes=True),
            )
        )
