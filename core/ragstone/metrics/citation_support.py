"""CitationSupport: whether the sources that an answer cites say what it says."""

import re
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ragstone.judging import Answer, CannotScore, Flow, each, numbered
from ragstone.metrics.asking import ask_items
from ragstone.metrics.base import ItemKind
from ragstone.metrics.claims import IS_SUPPORTED, SUPPORT_EXAMPLES, SplittingMetric, whole_context
from ragstone.metrics.factual_correctness import f1
from ragstone.metrics.fitted import SUPPORTED, length
from ragstone.metrics.values import share_of
from ragstone.options import Text, checked
from ragstone.outcome import Evidence, Score, Verdict
from ragstone.sample import Sample, SampleField

_NUMBER = r"(?:sources?:?\s*)?\^?\d{1,3}"
_NUMBERS = rf"{_NUMBER}(?:\s*(?:,|;|&|and)\s*{_NUMBER})*"
MARKS = rf"(?i)\[\s*{_NUMBERS}\s*\]|\(\s*sources?:?\s*{_NUMBERS}\s*\)"
"""What counts as a citation: "[2]", "[1, 3]", "[^2]", "[Source 2]", "(Source 2)", "(sources 1 and 3)"."""
_SPACES, _BEFORE_END = re.compile(r"\s+"), re.compile(r" (?=[.,;:!?])")

_SUPPORTED = (
    "You are given numbered contexts, and claims that each name the contexts that they cite. Say of each claim whether "
    "these contexts, taken together, support it. yes: they say it or it plainly follows. no: they say otherwise or "
    "leave it open. Use no other context, and nothing that you know."
)


Answers = Mapping[tuple[str, tuple[int, ...]], Answer]
"""By claim, and by the numbers of the contexts that were asked about."""


class _Cited(NamedTuple):
    """A sentence of the response without its marks, and the numbers in them, each once."""

    text: str
    evidence: Evidence
    numbers: dict[int, None]


@dataclass(frozen=True, kw_only=True)
class CitationSupport(SplittingMetric):
    """F1 of citation recall and citation precision; higher is better.

        recall    = sentences of the response that their cited contexts, taken together, support / sentences
        precision = citations that are needed for that / citations
        score     = 2 * recall * precision / (recall + precision)

    Numbers count the retrieved contexts from 1, in their order. A citation is needed where its sentence is supported,
    and the context supports it alone, or the sentence's other contexts do not without it. A number without a context
    supports nothing. A mark behind a sentence belongs to it.

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        marks: A regular expression that matches each citation; the numbers in it are what it cites.
        language: Of the response, for splitting it; None: by its script.
        splitter: Another sentence splitter.

    Returns:
        A score within [0, 1]. Breakdown: `recall`, `precision`, `sentences` and `citations` (counts). Verdicts: each
        sentence, "supported" or "unsupported", and each citation, "needed" or "needless".
        `Unscored("undefined")` where the response cites nothing.

    Source:
        Gao et al. 2023, "Enabling Large Language Models to Generate Text with Citations" (ALCE), arXiv 2305.14627,
        section 3.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> metric = CitationSupport(llm=FakeLLM(lambda request: {"answers": {"1": "yes"}}))
        >>> metric.score(Sample(retrieved_contexts=["Ann did."], response="Ann did [1]. It rained.")).breakdown
        {'recall': 0.5, 'precision': 1.0, 'sentences': 2.0, 'citations': 1.0}
    """

    name: ClassVar[str] = "citation_support"
    asks: ClassVar[str] = "Do the sources that the answer cites say what it says?"
    version: ClassVar[str] = "2"
    required_fields: ClassVar[Sequence[SampleField]] = ("retrieved_contexts", "response")
    examples: ClassVar[Mapping[str, str]] = {"verdict": SUPPORT_EXAMPLES}
    prompts: ClassVar[Mapping[str, str]] = {"supported": _SUPPORTED, "verdict": IS_SUPPORTED}

    marks: Text = MARKS

    def __post_init__(self) -> None:
        super().__post_init__()
        checked("marks", self.marks, re.Pattern[str])

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The sentences, and each citation of each."""
        return (
            ItemKind("sentence", "Do the contexts that it cites support it?", ("supported", "unsupported"), "text"),
            ItemKind("citation", "Is it needed to support its sentence?", ("needed", "needless"), "text"),
        )

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return F1 of the share of supported sentences and the share of needed citations."""
        recall, precision = share_of(verdicts, "sentence", "supported"), share_of(verdicts, "citation", "needed")
        return None if recall is None or precision is None else f1(precision, recall)

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        cited = self._cited(sample.response or "", (yield from self.sentences(sample, "response")))
        citations = sum(len(sentence.numbers) for sentence in cited)
        if not citations:
            raise CannotScore("undefined", "response: cites no context by its number (0 of 0 citations)")
        contexts = sample.retrieved_contexts
        asked = list(dict.fromkeys((one.text, group) for one in cited for group in _groups(one, len(contexts))))
        answers = dict(zip(asked, (yield from self._check(asked, contexts)), strict=True))
        verdicts = [verdict for i, one in enumerate(cited, 1) for verdict in _verdicts(str(i), one, answers, sample)]
        good = [verdict.kind for verdict in verdicts if not verdict.lowers_score]
        supported, needed = good.count("sentence"), good.count("citation")
        return self._score(
            self.value_of(verdicts, sample, {}),
            f"The cited contexts support {supported} of {len(cited)} sentences; {needed} of {citations} citations are "
            "needed for it.",
            breakdown={
                "recall": supported / len(cited),
                "precision": needed / citations,
                "sentences": float(len(cited)),
                "citations": float(citations),
            },
            verdicts=verdicts,
        )

    def _cited(self, response: str, sentences: Sequence[Evidence]) -> list[_Cited]:
        """Return the sentences with what they cite: a mark belongs to the last sentence on its line that has begun."""
        marks = re.compile(self.marks)
        bare = marks.sub(lambda mark: " " * len(mark[0]), response)
        begun: list[int] = []
        cited: list[_Cited] = []
        for sentence in sentences:
            if word := re.search(r"\w", bare[sentence.start : sentence.end]):
                begun.append(sentence.start + word.start())
                text = _SPACES.sub(" ", bare[sentence.start : sentence.end].strip())
                cited.append(_Cited(_BEFORE_END.sub("", text), sentence, {}))
        for mark in marks.finditer(response) if cited else ():
            place, line = bisect(begun, mark.start()) - 1, bare.rfind("\n", 0, mark.start()) + 1
            if line and not bare[line : mark.start()].strip():  # at the head of a line, which then belongs to it
                place += 1
            of = cited[min(max(place, 0), len(cited) - 1)]
            of.numbers.update(dict.fromkeys(map(int, re.findall(r"\d+", mark[0]))))
        return cited

    def _check(self, claims: Sequence[tuple[str, tuple[int, ...]]], contexts: Sequence[str]) -> Flow[list[Answer]]:
        """Ask of each claim whether the contexts of its numbers support it."""
        if self.asks_one_by_one and not self.decides:
            alone: list[Flow[list[Answer]]] = []
            for claim, group in claims:
                text = "\n".join([contexts[n - 1] for n in group])
                data, more = {"text": text}, {"length": length(text)}
                alone.append(ask_items(self, "verdict", data, [claim], kind="claim", fitted=SUPPORTED, more=more))
            return [answer for (answer,) in (yield from each(alone))]
        used = sorted({n for _, group in claims for n in group})
        listed = "\n".join(numbered([contexts[n - 1]], n) for n in used)
        items = [f"{claim} (cites {', '.join(map(str, group))})" for claim, group in claims]
        task = "Say of each of the {n} claims whether the contexts that it cites support it"
        return (yield from ask_items(self, "supported", {"contexts": listed}, items, kind="claim", task=task))


def _groups(sentence: _Cited, contexts: int) -> Iterator[tuple[int, ...]]:
    """Yield the contexts that may support a sentence: all that it cites, each alone, and all but each."""
    real = _real(sentence, contexts)
    yield from filter(None, (real, *((n,) for n in real), *(_without(n, real) for n in real)))


def _real(sentence: _Cited, contexts: int) -> tuple[int, ...]:
    return tuple(n for n in sentence.numbers if 1 <= n <= contexts)


def _without(number: int, numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in numbers if n != number)


def _verdicts(name: str, sentence: _Cited, answers: Answers, sample: Sample) -> Iterator[Verdict]:
    """Yield the verdict on a sentence, and on each of its citations."""
    text, real = sentence.text, _real(sentence, len(sample.retrieved_contexts))
    yes = {group for (claim, group), answer in answers.items() if claim == text and answer.choice == "yes"}
    yield Verdict(
        id=name,
        kind="sentence",
        text=text,
        verdict="supported" if real in yes else "unsupported",
        probability=answers[text, real].probability("yes") if real else None,
        evidence=(sentence.evidence,),
        lowers_score=real not in yes,
    )
    for number in sentence.numbers:
        exists = number in real
        needed = exists and real in yes and ((number,) in yes or _without(number, real) not in yes)
        yield Verdict(
            id=f"{name}.{number}",
            kind="citation",
            text=text,
            verdict="needed" if needed else "needless",
            evidence=(sentence.evidence, *([whole_context(sample, number - 1)] if exists else ())),
            lowers_score=not needed,
        )
