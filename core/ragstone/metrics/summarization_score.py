"""SummarizationScore: whether a summary keeps what matters, and is short."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ragstone.errors import CannotScore
from ragstone.judging.flow import Flow
from ragstone.judging.reply import TEXT, distinct, json_form, listing, record
from ragstone.metrics.asking import WRITTEN, ItemDetails, ask_items
from ragstone.metrics.base import ItemKind, ItemOrigin
from ragstone.metrics.claims import SplittingMetric
from ragstone.metrics.values import expected_share, share_of, verdicts_of
from ragstone.options import Flag, Share, Texts
from ragstone.outcome import Score, Verdict
from ragstone.sample import Sample, SampleField

# Bounds a judge that does not end its list.
_MOST_QUESTIONS = 10

_MAKE = (
    "Extract the keyphrases of a text that a summary must keep (people, organisations, places, dates, amounts, "
    "central terms). For each write one yes/no question on what the text says about it (not on its wording), so that "
    "yes is the right answer. At most 10, the most important first. Write in the language of the text."
)
_ANSWER = (
    "Answer closed questions from a summary alone. yes: the summary says so. no: it says otherwise or does not say."
)
_ANSWER_ALONE = "Does the summary answer the question with yes?"
_FORM = json_form(record(items=listing(record(keyphrase=TEXT, question=TEXT), 0, _MOST_QUESTIONS)), question="QUESTION")
_ANSWER_EACH = ItemDetails(alone="answer")
_SAYS = "Does the text say what the claim says, in its own words or shorter?"


def conciseness(summary_characters: int, source_characters: int) -> float:
    """Return 1 - min(|s|, |S|) / (|S| + 1e-10): 0 for a copy or anything longer, towards 1 for shorter.

    Example:
        >>> round(conciseness(25, 100), 6), round(conciseness(300, 100), 6)
        (0.75, 0.0)
    """
    return 1.0 - min(summary_characters, source_characters) / (source_characters + 1e-10)


def weighed(qa: float, concise: float, options: Mapping[str, Any]) -> float:
    """Return qa, and conciseness with the weight `coeff` unless `length_penalty` is False.

    Example:
        >>> weighed(1.0, 0.5, {"length_penalty": True, "coeff": 0.5})
        0.75
    """
    coeff = options["coeff"] if options["length_penalty"] else 0.0
    return qa * (1.0 - coeff) + concise * coeff


@dataclass(frozen=True, kw_only=True)
class SummarizationScore(SplittingMetric):
    """Share of the source's key points that the summary keeps, weighed with its conciseness; higher is better.

    From the source text S (`retrieved_contexts` joined by newlines) the judge extracts keyphrases and makes
    closed questions whose answer is yes for S; they are put to the summary s (`response`). A small judge writes bad
    questions and a decision model none: where no `writer` does, they are asked of each sentence of S whether s says it.

        qa = questions answered yes / questions asked
        conciseness = 1 - min(|s|, |S|) / (|S| + 1e-10)            (lengths in characters)
        score = qa * (1 - coeff) + conciseness * coeff

    A verbatim copy has conciseness 0 and so scores at most 1 - coeff; an empty summary is not scored.

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        length_penalty: False leaves conciseness out: the score is qa.
        coeff: The weight of conciseness within [0, 1], 0.5 by default, as in ragas' code. (One page of its
            documentation has it as the weight of qa: that is 1 - coeff.)
        questions: Closed questions to put to the summary, instead of generated ones.
        language: Of the source, for splitting it; None: by its script.
        splitter: Another sentence splitter.

    Returns:
        A score within [0, 1]. Breakdown: `qa`, `conciseness`, and `qa_expected` where there are
        probabilities. Verdicts: each question, "yes" or "no" by the summary; or each of the source's sentences, with
        its place. `Unscored("undefined")` when no question could be made.

    Source:
        ragas 0.4, "Summarization Score" of its documentation.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> metric = SummarizationScore(llm=FakeLLM(lambda request: {"answers": {"1": "yes"}}),
        ...                             questions=("Is Emma a novel?",))
        >>> metric.score(Sample(retrieved_contexts=["Emma is a novel by Jane Austen."], response="A novel.")).breakdown
        {'qa': 1.0, 'conciseness': 0.7419354838718002}
    """

    name: ClassVar[str] = "summarization_score"
    asks: ClassVar[str] = "Does the summary keep what matters, and is it short?"
    costs: ClassVar[Mapping[str, str]] = {
        "question": "the summary leaves out something that the source says",
        "sentence": "the summary leaves out something that the source says",
    }
    version: ClassVar[str] = "3"
    required_fields: ClassVar[Sequence[SampleField]] = ("retrieved_contexts", "response")
    has_expected: ClassVar[bool] = True
    prompts: ClassVar[Mapping[str, str]] = {
        "questions": _MAKE,
        "answers": _ANSWER,
        "answer": _ANSWER_ALONE,
        "says": _SAYS,
    }

    length_penalty: Flag = True
    coeff: Share = 0.5
    questions: Texts | None = None

    @property
    def source_field(self) -> SampleField:
        """The retrieved contexts."""
        return "retrieved_contexts"

    @property
    def asks_sentences(self) -> bool:
        """Whether the source's sentences stand in for questions."""
        return self.questions is None and self.writer is None and self.asks_one_by_one

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The questions on the source, or its sentences."""
        if self.asks_sentences:
            return (ItemKind("sentence", "Does the summary say it?", ("yes", "no"), "text"),)
        origin: ItemOrigin = "judge" if self.questions is None else "given"
        return (ItemKind("question", "Does the summary answer it with yes?", ("yes", "no"), origin),)

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:
        """Return the share of questions, or of the source's sentences, with a yes, weighed with conciseness."""
        asked = "sentence" if any(verdict.kind == "sentence" for verdict in verdicts) else "question"
        qa = share_of(verdicts, asked, "yes")
        concise = conciseness(len(sample.response or ""), len("\n".join(sample.retrieved_contexts)))
        return None if qa is None else weighed(qa, concise, options)

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, "response")
        source, summary = "\n".join(sample.retrieved_contexts), sample.response or ""
        asking = self._sentences(sample, summary) if self.asks_sentences else self._questions(source, summary)
        verdicts, expected = yield from asking
        kept = sum(verdict.verdict == "yes" for verdict in verdicts)
        breakdown = {"qa": kept / len(verdicts), "conciseness": conciseness(len(summary), len(source))}
        if expected is not None:
            breakdown["qa_expected"] = expected
        options = {"length_penalty": self.length_penalty, "coeff": self.coeff}
        what = "says" if self.asks_sentences else "answers yes to"
        of = "sentences of the source" if self.asks_sentences else "questions on the source"
        return self._score(
            self.value_of(verdicts, sample, options),
            f"The summary {what} {kept} of {len(verdicts)} {of} and has {len(summary):,} characters for the source's "
            f"{len(source):,}.",
            expected=None if expected is None else weighed(expected, breakdown["conciseness"], options),
            breakdown=breakdown,
            verdicts=verdicts,
        )

    def _sentences(self, sample: Sample, summary: str) -> Flow[tuple[list[Verdict], float | None]]:
        """Ask of each sentence of the source whether the summary says it."""
        claims = yield from self.sentence_claims(sample, "retrieved_contexts")
        texts = [claim.text for claim in claims]
        answers = yield from ask_items(self, "says", {"text": summary}, texts, kind="claim")
        asked = [replace(answer, evidence=claim.evidence) for answer, claim in zip(answers, claims, strict=True)]
        return verdicts_of("sentence", texts, asked, "yes"), expected_share(answers, "yes")

    def _questions(self, source: str, summary: str) -> Flow[tuple[list[Verdict], float | None]]:
        """Put closed questions on the source to the summary."""
        questions = self.questions or (yield from self._make(source))
        if not questions:
            raise CannotScore("undefined", "qa: the judge found no questions in retrieved_contexts (0 of 0)")
        answers = yield from ask_items(self, "answers", {"summary": summary}, questions, details=_ANSWER_EACH)
        return verdicts_of("question", questions, answers, "yes"), expected_share(answers, "yes")

    def _make(self, source: str) -> Flow[tuple[str, ...]]:
        return self.ask_json(
            "questions",
            {"text": source},
            f"List at most {_MOST_QUESTIONS} keyphrases of this text, most important first, each with its yes/no "
            "question; the right answer is yes.",
            _FORM,
            lambda value: distinct([item["question"] for item in value["items"]], "question"),
            WRITTEN,
        )
