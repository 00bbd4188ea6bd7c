"""What metrics share: the arithmetic on answers, and lists of items put to the judge, together or one by one."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ragstone.errors import CannotScore
from ragstone.judging.flow import Flow, each
from ragstone.judging.prompt import numbered
from ragstone.judging.reply import TEXT, Answer, distinct, listing, one_of, record, whole
from ragstone.metrics.base import ItemKind, Metric
from ragstone.metrics.fitted import SUPPORTED, Fitted
from ragstone.outcome import Evidence, Score, Verdict
from ragstone.sample import Sample, SampleField
from ragstone.text import WINDOW, Splitter, iter_sentences, language_of, split_sentences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST = 1e-4  # of a probability
_CLAIMS = record(claims=listing(TEXT))
CLAIM_WORDS = ("supported", "contradicted", "not_in_source")


def expected_share(answers: Sequence[Answer], good: str) -> float | None:
    """Return the mean probability of the answer `good`; None when one is missing or there are none.

    Example:
        >>> graded, plain = Answer("yes", {"yes": 0.75, "no": 0.25}), Answer("yes")
        >>> expected_share([graded, graded], "yes"), expected_share([graded, plain], "yes")
        (0.75, None)
    """
    probabilities = [answer.probability(good) for answer in answers]
    known = [p for p in probabilities if p is not None]
    return sum(known) / len(known) if known and len(known) == len(probabilities) else None


def share_of(verdicts: Iterable[Verdict], kind: str, good: str) -> float | None:
    """Return the share of the verdicts of a kind that are `good`; None for 0 of 0.

    Example:
        >>> words = ("supported", "contradicted")
        >>> claims = [Verdict(id=word, kind="claim", text="", verdict=word) for word in words]
        >>> share_of(claims, "claim", "supported"), share_of(claims, "part", "yes")
        (0.5, None)
    """
    hits = [verdict.verdict == good for verdict in verdicts if verdict.kind == kind]
    return sum(hits) / len(hits) if hits else None


def least(answers: Sequence[Answer], good: str) -> float:
    """Return the least probability of the answer `good`; 1 where none is known."""
    return min((p for answer in answers if (p := answer.probability(good)) is not None), default=1.0)


def log_odds(answer: Answer, yes: str = "yes") -> float:
    """Return the log-odds of a choice of an answer that has probabilities, within -9.2 and 9.2.

    Further out a log-probability is rounding.

    Example:
        >>> log_odds(Answer("no", {"yes": 0.5, "no": 0.5}))
        0.0
    """
    p = min(max(answer.probability(yes) or 0.0, _LEAST), 1.0 - _LEAST)
    return math.log(p / (1.0 - p))


def by_map(metric: Metric, fitted: Fitted, answers: Sequence[Answer]) -> list[Answer]:
    """Return answers of yes or no with the probabilities of a map of one signal, their log-odds.

    They stay as they are where one has no probabilities, and those of a decision model, on which no map was fitted.
    """
    if metric.decides or any(answer.probabilities is None for answer in answers):
        return list(answers)
    (signal,) = fitted.weights
    return fitted.answers([{signal: log_odds(answer)} for answer in answers])


def by_odds(yes: float, no: float) -> Answer:
    """Return the answer whose odds are `yes` to `no`; where both are 0 they say nothing, and it is no.

    Example:
        >>> by_odds(3.0, 1.0)
        Answer(choice='yes', probabilities={'yes': 0.75, 'no': 0.25})
    """
    share = yes / (yes + no) if yes + no else 0.5
    return Answer("yes" if share > 0.5 else "no", {"yes": share, "no": 1.0 - share})


def cosines_to_first(vectors: "NDArray[np.float32]", n: int) -> list[float]:
    """Cosine of the first row with each of the `n` others, within [-1, 1].

    Raises:
        CannotScore: The embedder returned another shape, something not finite, or a zero vector.

    Example:
        >>> import numpy as np
        >>> cosines_to_first(np.asarray([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]], dtype=np.float32), 2)
        [1.0, 0.0]
    """
    import numpy as np

    try:
        rows = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CannotScore("judge_unparseable", "embedder: did not return an array of numbers") from None
    if rows.ndim != 2 or rows.shape[0] != n + 1 or rows.shape[1] == 0:
        raise CannotScore("judge_unparseable", f"embedder: shape {rows.shape} for {n + 1} texts")
    if not np.isfinite(rows).all():
        raise CannotScore("judge_unparseable", "embedder: a vector contains NaN or infinity")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise CannotScore("judge_unparseable", "embedder: a zero vector has no direction")
    rows = rows / largest  # so that squares neither overflow nor vanish
    unit = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return [max(-1.0, min(1.0, float(cosine))) for cosine in unit[1:] @ unit[0]]


def verdicts_of(
    kind: str, items: Sequence[str], answers: Sequence[Answer], good: str, lowers: Sequence[bool] | None = None
) -> list[Verdict]:
    """Return each item with its answer; what is not `good` lowers the score, unless `lowers` says otherwise."""
    low = [answer.choice != good for answer in answers] if lowers is None else lowers
    return [
        Verdict(
            id=str(i),
            kind=kind,
            text=item,
            verdict=answer.choice,
            probability=answer.probability(good),
            evidence=answer.evidence,
            lowers_score=lowers_score,
        )
        for i, (item, answer, lowers_score) in enumerate(zip(items, answers, low, strict=True), 1)
    ]


def ask_word(
    metric: Metric, step: str, data: Mapping[str, str], words: tuple[str, ...] = ("yes", "no")
) -> Flow[Answer]:
    """Ask the question of a step for one of the words."""
    reply = f"Reply with one word: {', '.join(words[:-1])} or {words[-1]}."
    return metric.ask_choice(metric.choice(step, data, reply, words))


def ask_alone(
    metric: Metric,
    step: str,
    data: Mapping[str, str],
    kind: str,
    items: Sequence[str],
    words: tuple[str, ...] = ("yes", "no"),
    *,
    item_first: bool = False,
) -> Flow[list[Answer]]:
    """Ask about each item, which the prompt calls `kind`: an LLM in a call of its own, a decision model in one request.

    An LLM reads the texts first, which it then reads once for all items, unless the item is to come first.
    """
    if metric.decides:
        return metric.decide(metric.decision(step, data, [{kind: item} for item in items], words))
    prompts = ({kind: item, **data} if item_first else {**data, kind: item} for item in items)
    return each([ask_word(metric, step, prompt, words) for prompt in prompts])


def pointing(verdict: Mapping[str, Any], sentences: Sequence[Evidence]) -> Answer:
    """Return a verdict with the sentences whose numbers it names as evidence, each once."""
    numbers: Sequence[int] = verdict["evidence"]
    return Answer(verdict["verdict"], evidence=tuple(sentences[number - 1] for number in sorted(set(numbers))))


def ask_together(
    metric: Metric,
    step: str,
    data: Mapping[str, str],
    kind: str,
    items: Sequence[str],
    words: tuple[str, ...],
    task: str,
    *,
    sentences: Sequence[Evidence] | None = None,
    reply: str = "answers",
) -> Flow[list[Answer]]:
    """Ask about all items, which the prompt calls `kind`, in one call; the judge may point to sentences by number."""
    ids = [str(i) for i in range(1, len(items) + 1)]
    word = one_of(words)
    one = word if sentences is None else record(evidence=listing(whole(1, len(sentences))), verdict=word)

    read: Callable[[Any], Answer] = Answer if sentences is None else lambda verdict: pointing(verdict, sentences)
    return metric.ask_json(
        step,
        {**data, f"{kind}s": numbered(items)},
        task,
        record(**{reply: record(**dict.fromkeys(ids, one))}),
        lambda value: [read(value[reply][i]) for i in ids],
        names={reply: "ANSWER"} if sentences is None else None,
    )


def ask_items(
    metric: Metric,
    step: str,
    texts: Mapping[str, str],
    items: Sequence[str],
    words: tuple[str, ...] = ("yes", "no"),
    *,
    kind: str = "question",
    alone: str | None = None,
    task: str | None = None,
) -> Flow[list[Answer]]:
    """Ask about each item over shared texts, as suits the judge: all in one call, or each in its own.

    Args:
        metric: Whose prompts and judge.
        step: The step, when all are asked together.
        texts: What the items are asked of, by what the prompt calls it.
        items: The questions, claims or passages.
        words: The answers to choose from.
        kind: What the prompt calls an item.
        alone: The step, when they are asked one by one; None: the same.
        task: What to do with all of them; None: answer each from the text alone.
    """
    if metric.asks_one_by_one:
        return ask_alone(metric, alone or step, texts, kind, items, words)
    task = task or f"Answer each of the {len(items)} {kind}s from the {next(iter(texts))} alone"
    task = f"{task}: {', '.join(words[:-1])} or {words[-1]}."
    return ask_together(metric, step, texts, kind, items, words, task)


@dataclass(frozen=True)
class Claim:
    """A claim of the response, and where it stands: nowhere, when the judge worded it."""

    text: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SplittingMetric(Metric):
    """A metric whose verdicts point to the sentences of a text.

    Args:
        language: Of the text, for splitting it. None: by its script (`ragstone.text.language_of`), which is enough for
            English and for scripts other than Latin and Cyrillic.
        splitter: Another sentence splitter.
    """

    language: str | None = None
    splitter: Splitter = split_sentences

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language not in (None, "en"):
            self.splitter("", self.language)  # an unknown language is refused here, not at the first sample

    def find_claims(
        self, name: str, sample: Sample, field: Literal["response", "reference"] = "response"
    ) -> Flow[tuple[Claim, ...]]:
        """Return the claims of a field: its sentences, or what the judge lists of the text, which is called `name`.

        A small judge lists claims badly, and a sentence costs no call.
        """
        if self.asks_one_by_one:
            return self.sentence_claims(sample, field)
        return self.ask_json(
            "claims",
            {name: "".join(sample.texts(field))},
            f"List the claims of this {name}.",
            _CLAIMS,
            lambda value: tuple(map(Claim, distinct(value["claims"], "claim"))),
            writes=True,
        )

    def claims_kind(self, kind: str, source: str) -> ItemKind:
        """Return the kind of claims that a person checks against a text: asked one by one, they are sentences."""
        question = f"Is it supported by the {source}?"
        if self.asks_one_by_one:
            return ItemKind(kind, question, ("supported", "unsupported"), "text")
        return ItemKind(kind, question, CLAIM_WORDS)

    def sentences(self, sample: Sample, field: SampleField) -> Flow[list[Evidence]]:
        """Return the sentences of a field in order, without the white space around them.

        Offsets count from the start of the text, or of the chunk for `retrieved_contexts`. A language of None is each
        text's own, by its script. It asks nothing, and yields an empty round behind each `WINDOW` of characters.
        """
        split = iter_sentences if self.splitter is split_sentences else self.splitter
        sentences: list[Evidence] = []
        since = 0  # the last empty round, in characters
        for i, text in enumerate(sample.texts(field)):
            chunk = i if field == "retrieved_contexts" else None
            for _, start, end in split(text, self.language or language_of(text)):
                since += end - start
                if since > WINDOW:
                    since = 0
                    yield ()
                piece = text[start:end]
                bare = piece.strip()
                if bare:
                    left = start + len(piece) - len(piece.lstrip())
                    sentences.append(Evidence(field=field, chunk=chunk, start=left, end=left + len(bare), text=bare))
        return sentences

    def sentence_claims(self, sample: Sample, field: SampleField) -> Flow[tuple[Claim, ...]]:
        """Return each sentence of a field as a claim; one that is repeated counts once."""
        sentences = yield from self.sentences(sample, field)
        return tuple({sentence.text: Claim(sentence.text, (sentence,)) for sentence in sentences}.values())

    def check_claims(
        self, claims: Sequence[Claim], name: str, sample: Sample, field: SampleField
    ) -> Flow[list[Answer]]:
        """Have each claim checked against the texts of a field, which are called `name`.

        Asked one by one, probabilities are mapped to the share of supported claims among labelled ones
        (`ragstone.metrics.fitted`).
        """
        if self.asks_one_by_one:
            return (yield from self._check_alone(claims, "\n".join(sample.texts(field))))
        sentences = yield from self.sentences(sample, field)
        return (
            yield from ask_together(
                self,
                "verdicts",
                {name: listed(sentences)},
                "claim",
                [claim.text for claim in claims],
                CLAIM_WORDS,
                f"Check each of the {len(claims)} claims. "
                f"evidence: numbers of the {name}'s sentences that show it, [] if none.",
                sentences=sentences,
                reply="verdicts",
            )
        )

    def _check_alone(self, claims: Sequence[Claim], text: str) -> Flow[list[Answer]]:
        asked = yield from ask_alone(self, "verdict", {"text": text}, "claim", [claim.text for claim in claims])
        mapped = by_map(self, SUPPORTED, asked)
        return [in_words(answer, claim) for answer, claim in zip(mapped, claims, strict=True)]


@dataclass(frozen=True, kw_only=True)
class SupportedClaims(SplittingMetric):
    """A metric that is the share of a text's claims that the retrieved contexts support."""

    has_expected: ClassVar[bool] = True
    claims_of: ClassVar[Literal["response", "reference"]]

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The claims."""
        return (self.claims_kind("claim", "contexts"),)

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the share of supported claims."""
        return share_of(verdicts, "claim", "supported")

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        claims = yield from self.find_claims(self.claims_of, sample, self.claims_of)
        if not claims:
            raise CannotScore("undefined", f"the judge found no claims in {self.claims_of} (0 of 0)")
        checks = yield from self.check_claims(claims, "context", sample, "retrieved_contexts")
        supported = sum(check.choice == "supported" for check in checks)
        breakdown = {"supported": float(supported), "claims": float(len(claims))}
        expected = expected_share(checks, "supported")
        if expected is not None:
            breakdown["least"] = least(checks, "supported")
        verdicts = verdicts_of("claim", [claim.text for claim in claims], checks, "supported")
        return self._score(
            self.value_of(verdicts, sample, {}),
            f"The retrieved contexts support {supported} of {len(claims)} claims of the {self.claims_of}.",
            expected=expected,
            breakdown=breakdown,
            verdicts=verdicts,
        )


def in_words(answer: Answer, claim: Claim) -> Answer:
    """Return an answer of yes or no as "supported" or "unsupported", with where the claim stands."""
    words = {"yes": "supported", "no": "unsupported"}
    probabilities = answer.probabilities and {words[word]: p for word, p in answer.probabilities.items()}
    return Answer(words[answer.choice], probabilities, claim.evidence)


def whole_context(sample: Sample, i: int) -> Evidence:
    """Return a retrieved context as evidence."""
    text = sample.retrieved_contexts[i]
    return Evidence(field="retrieved_contexts", chunk=i, start=0, end=len(text), text=text)


def listed(sentences: Sequence[Evidence], first: int = 1) -> str:
    """Return the sentences as numbered lines, with a blank line between chunks."""
    blocks: dict[int | None, list[str]] = {}
    for sentence in sentences:
        blocks.setdefault(sentence.chunk, []).append(sentence.text)
    lines: list[str] = []
    for block in blocks.values():
        lines.append(numbered(block, first))
        first += len(block)
    return "\n\n".join(lines)
