"""CitationSupport: whether the sources that an answer cites support it."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from unicodedata import normalize

from ragstone.judging import Answer, CannotScore, Flow, each, numbered
from ragstone.metrics.asking import ItemDetails, ask_items, by_map
from ragstone.metrics.base import ItemKind
from ragstone.metrics.claims import IS_SUPPORTED, SUPPORT_EXAMPLES, SplittingMetric, whole_context
from ragstone.metrics.factual_correctness import f1
from ragstone.metrics.fitted import SUPPORTED, length
from ragstone.metrics.values import share_of
from ragstone.options import Text, checked
from ragstone.outcome import Evidence, Score, Verdict
from ragstone.sample import Sample, SampleField

_DASH = r"\s?[-\u2010-\u2015\u2212]\s?"
_LABEL = r"(?:source|context|doc(?:ument)?|citation|cite|ref(?:erence)?|passage|chunk|snippet|id)s?[\s:#.=_-]{0,3}"
# A place in the source is no number of a context.
_PLACE = (
    rf"(?:\s?[,:]?\s?(?:pp?|pages?|sec(?:tion)?s?|ch(?:apter)?s?|lines?|para(?:graph)?s?|\xa7+)\b\.?\s?"
    rf"\d+(?:{_DASH}\d+)?|\u2020[^\]\u3011]{{0,40}})"
)
_NUMBER = rf"[\^#]?\d{{1,3}}(?!\d)(?:{_DASH}\d{{1,3}}(?!\d))?{_PLACE}?"
_MORE = rf"(?:(?:[\s,;&]|and)+(?:{_LABEL})?{_NUMBER})*\s?"
_NUMBERS = rf"\s?(?:{_LABEL})?{_NUMBER}{_MORE}"
_LINK = r"\((?:https?:|#)[^\s()]{0,500}\)"
_RAISED = r"[\u2070\xb9\xb2\xb3\u2074-\u2079]"
_UNITS = r"(?<!\b(?:[kcdmn\xb5\u03bc]m|ft|in|yd|mi|mc|co))"
_MARK = (
    rf"(?:(?:\[\[{_NUMBERS}\]\]|[\[\u3010\uff3b]{_NUMBERS}[\]\u3011\uff3d])(?:{_LINK})?"
    rf"|[(\uff08]\s?{_LABEL}{_NUMBER}{_MORE}[)\uff09]"
    # A number without a word stands behind its words: before the end of a clause or of a line.
    rf"|(?:(?<=\S\s)|(?<=[^\s\w(])|(?<=[\u3040-\u9fff]))[(\uff08]\s?{_NUMBER}{_MORE}[)\uff09]"
    rf"(?=[ \t]*(?:$|[.,;:!?)\"'\u2019\u201d\xbb\u3002\uff0c\uff1b\uff01\uff1f]))"
    # Raised numbers, but for powers and units of area.
    rf"|(?:(?<=[^\W\d_]{{2}})|(?<=\d{{4}})|(?<=[\s.,;:!?)\"'\u2019\u201d\xbb\u3002\uff01\uff1f])){_UNITS}"
    rf"(?:<sup>\[?{_NUMBERS}\]?</sup>|{_RAISED}+(?:[,\u02d2\u207b\u2013-]{_RAISED}+)*(?![\w(])))"
)
MARKS = rf"(?im){_MARK}(?:[ \t]{{0,3}}(?:[,;&]|and\b)?[ \t]{{0,3}}{_MARK})*"
"""What counts as a citation: see docs/metrics/citation_support.md. Marks in a row are one."""
_NO_CONTEXT, _RANGE = re.compile(f"(?i){_PLACE}|{_LINK}"), re.compile(rf"(\d{{1,9}})(?:{_DASH}(\d{{1,9}}))?")
_LONGEST_RANGE = 100
_MOST_NAMED = 3
_UNREAD = re.compile(
    r"[\[\u3010\uff3b][^][\u3010\u3011\n]{0,40}\d[^][\u3010\u3011\n]{0,40}[\]\u3011\uff3d]|\(\d{1,3}\)"
)
_LINE = re.compile(r"[^\n]+")
_HEADING = re.compile(
    r"[\W_]*(?:works cited|(?:list of )?(?:sources?|references?|citations?|bibliography|footnotes?)(?: cited| used)?"
    r"|quellen|fuentes|referencias|r\xe9f\xe9rences|\u53c2\u8003\u6587\u732e|\u6765\u6e90)"
    r"[\s*_]*(?:[:\uff1a][\s*_]*)?(?=$|[\[(\u3010\uff08]|https?:)",
    re.IGNORECASE,
)
_ENTRY = re.compile(rf"\s*(?:[-*+>\u2022\u2013]|[\[(<^\u3010\uff08]|\d{{1,3}}[.):]|{_RAISED}|https?:|{_LABEL}\d)", re.I)
_BULLETS = " \t*+>\u2022\u2013-"

_SUPPORTED = (
    "You are given numbered contexts, and claims that each name the contexts that they cite. Say of each claim whether "
    "these contexts, taken together, support it. yes: they say it or it plainly follows. no: they say otherwise or "
    "leave it open. Use no other context, and nothing that you know."
)

_EACH = ItemDetails(task="Say of each of the {n} claims whether the contexts that it cites support it")

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
    supports nothing. A mark behind a sentence belongs to it, and changes no sentence: they are those of the response
    without marks. A closing list of sources is no part of the answer. `reason` names texts in brackets that hold a
    number and are no mark.

    Args:
        llm: The judge. See `Metric` for the options that all metrics share.
        marks: A regular expression that matches each citation; the numbers in it are cited ("1-3": all three).
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
    costs: ClassVar[Mapping[str, str]] = {
        "sentence": "the cited contexts do not support a sentence of the answer",
        "citation": "a citation is not needed to support its sentence",
    }
    version: ClassVar[str] = "3"
    required_fields: ClassVar[Sequence[SampleField]] = ("retrieved_contexts", "response")
    checks_claims: ClassVar[bool] = True
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
        cited, unread = yield from self._cited(sample)
        citations = sum(len(sentence.numbers) for sentence in cited)
        if not citations:
            raise CannotScore("undefined", f"response: cites no context by its number (0 of 0 citations){unread}")
        contexts = sample.retrieved_contexts
        asked = list(dict.fromkeys((one.text, group) for one in cited for group in _groups(one, len(contexts))))
        answers = dict(zip(asked, (yield from self._check(asked, contexts)), strict=True))
        verdicts = [verdict for i, one in enumerate(cited, 1) for verdict in _verdicts(str(i), one, answers, sample)]
        good = [verdict.kind for verdict in verdicts if not verdict.lowers_score]
        supported, needed = good.count("sentence"), good.count("citation")
        return self._score(
            self.value_of(verdicts, sample, {}),
            f"The cited contexts support {supported} of {len(cited)} sentences; {needed} of {citations} citations are "
            f"needed for it{unread}.",
            breakdown={
                "recall": supported / len(cited),
                "precision": needed / citations,
                "sentences": float(len(cited)),
                "citations": float(citations),
            },
            verdicts=verdicts,
        )

    def _cited(self, sample: Sample) -> Flow[tuple[list[_Cited], str]]:
        """Find the sentences with what they cite, and say what is in brackets with a number and was not read.

        A mark belongs to the last sentence on its line that has begun.
        """
        response = sample.response or ""
        marks = list(re.finditer(self.marks, response))
        end = _end_of_answer(response, marks)
        marks = [mark for mark in marks if mark.start() < end]
        bare, origin, places = _unmarked(response[:end], marks)
        begun: list[int] = []
        cited: list[_Cited] = []
        for sentence in (yield from self.sentences(sample.model_copy(update={"response": bare}), "response")):
            if word := re.search(r"\w", sentence.text):
                begun.append(sentence.start + word.start())
                start, behind = origin[sentence.start], origin[sentence.end - 1] + 1
                place = Evidence(field="response", start=start, end=behind, text=response[start:behind])
                cited.append(_Cited(" ".join(sentence.text.split()), place, {}))
        for mark, at in zip(marks, places, strict=True) if cited else ():
            place_of, line = bisect_left(begun, at) - 1, bare.rfind("\n", 0, at) + 1
            # At the head of a line, which then belongs to the mark.
            if line and not bare[line:at].strip(_BULLETS):
                place_of += 1
            cited[min(max(place_of, 0), len(cited) - 1)].numbers.update(dict.fromkeys(_numbers(mark[0])))
        unread = list(dict.fromkeys(_UNREAD.findall(bare)))[:_MOST_NAMED]
        return cited, f"; not read as citations: {', '.join(unread)}" if unread else ""

    def _check(self, claims: Sequence[tuple[str, tuple[int, ...]]], contexts: Sequence[str]) -> Flow[list[Answer]]:
        """Ask of each claim whether the contexts of its numbers support it."""
        if self.asks_one_by_one and (self.judge_writes or self.claims_only):
            texts = ["\n".join([contexts[n - 1] for n in group]) for _, group in claims]
            pairs = zip(texts, claims, strict=True)
            alone = [self.ask_word("verdict", {"text": text}, item={"claim": claim}) for text, (claim, _) in pairs]
            asked = zip(texts, (yield from each(alone)), strict=True)
            return [by_map(self, SUPPORTED, [answer], length=length(text))[0] for text, answer in asked]
        used = sorted({n for _, group in claims for n in group})
        listed = "\n".join(numbered([contexts[n - 1]], n) for n in used)
        items = [f"{claim} (cites {', '.join(map(str, group))})" for claim, group in claims]
        return (yield from ask_items(self, "supported", {"contexts": listed}, items, kind="claim", details=_EACH))


def _unmarked(text: str, marks: Sequence[re.Match[str]]) -> tuple[str, list[int], list[int]]:
    """Return a text without marks and the space before each, where its letters stood, and where in it each mark was."""
    pieces: list[str] = []
    origin: list[int] = []
    places: list[int] = []
    at, last = 0, "\n"
    for mark in marks:
        piece = text[at : mark.start()].rstrip(" \t")
        pieces.append(piece)
        origin += range(at, at + len(piece))
        places.append(len(origin))
        at, last = mark.end(), piece[-1:] or last
        # The mark is at the head of a line.
        if last == "\n":
            while text[at : at + 1] in (" ", "\t", ":"):
                at += 1
        elif text[at : at + 1].isalpha() and last.isascii() and (last in ".!?" or last.isalnum()):
            # The mark stood for a space.
            pieces.append(" ")
            origin.append(mark.start())
    return "".join([*pieces, text[at:]]), [*origin, *range(at, len(text))], places


def _numbers(mark: str) -> Iterator[int]:
    """Yield the numbers that a mark cites, those of a range too."""
    for first, last in _RANGE.findall(normalize("NFKC", _NO_CONTEXT.sub(" ", mark))):
        a, b = int(first), int(last or first)
        yield from range(a, b + 1) if a <= b < a + _LONGEST_RANGE else (a, b)


def _end_of_answer(response: str, marks: Sequence[re.Match[str]]) -> int:
    """Return where a closing list of sources begins: with a heading, or of lines that are a mark and a title."""
    lines = [line for line in _LINE.finditer(response) if not line[0].isspace()]
    for line in reversed(lines[1:]):
        if _HEADING.match(line[0]):
            return line.start()
        if not _ENTRY.match(line[0]):
            break
    heads = {mark.start(): mark for mark in marks}
    listed: set[int] = set()
    at = len(lines)
    while at > 1:
        line = lines[at - 1]
        mark = heads.get(line.end() - len(line[0].lstrip(_BULLETS)))
        title = "" if mark is None else response[mark.end() : line.end()].strip()
        if mark is None or not title or (title.endswith((".", "!", "?", "\u3002")) and "http" not in title):
            break
        listed.update(_numbers(mark[0]) if "http" not in title else ())
        at -= 1
    begins = lines[at].start() if at < len(lines) else len(response)
    if listed.isdisjoint(n for mark in marks if mark.start() < begins for n in _numbers(mark[0])) and listed:
        # It is no list of sources of what was said before.
        return len(response)
    if at < len(lines) and at > 1 and lines[at - 1][0].rstrip().endswith(":"):
        return lines[at - 1].start()
    return begins


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
