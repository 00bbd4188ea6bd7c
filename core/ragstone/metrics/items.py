"""What metrics share: lists of items put to the judge, together or one by one, and the arithmetic on the answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ragstone.errors import CannotScore
from ragstone.judging.flow import Flow, each
from ragstone.judging.prompt import numbered, sendable
from ragstone.judging.reply import TEXT, Answer, distinct, keyed, listing, one_of, record, whole
from ragstone.metrics.base import Metric
from ragstone.outcome import Evidence, Verdict
from ragstone.sample import Sample, SampleField
from ragstone.text import Splitter, language_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CLAIM_WORDS = ("supported", "contradicted", "not_in_source")


def expected_share(probabilities: Sequence[float | None]) -> float | None:
    """Return the mean of the probabilities; None when one is missing or there are none.

    Example:
        >>> expected_share([0.5, 1.0]), expected_share([0.5, None])
        (0.75, None)
    """
    known = [p for p in probabilities if p is not None]
    return sum(known) / len(known) if known and len(known) == len(probabilities) else None


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
        raise CannotScore("judge_unparseable", "embedder: returned no array of numbers") from None
    if rows.ndim != 2 or rows.shape[0] != n + 1 or rows.shape[1] == 0:
        raise CannotScore("judge_unparseable", f"embedder: shape {rows.shape} for {n + 1} texts")
    if not np.isfinite(rows).all():
        raise CannotScore("judge_unparseable", "embedder: a vector holds NaN or infinity")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise CannotScore("judge_unparseable", "embedder: a zero vector has no direction")
    rows = rows / largest  # so that squares neither overflow nor vanish
    unit = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return [max(-1.0, min(1.0, float(cosine))) for cosine in unit[1:] @ unit[0]]


@dataclass(frozen=True, slots=True)
class Ask:
    """One way of asking about items.

    Attributes:
        step: The step of the metric's prompts.
        data: What the judge reads beside the items, by name.
        task: What to do, in short, said behind the data.
    """

    step: str
    data: Mapping[str, str]
    task: str


def judge_items(
    metric: Metric,
    kind: str,
    items: Sequence[str],
    words: tuple[str, ...],
    instructions: str,
    *,
    alone: Ask,
    together: Ask,
    sentences: Sequence[Evidence] | None = None,
    reply: str = "answers",
) -> Flow[list[Answer]]:
    """Ask about each item: in one call for all, or in one call each where the judge is asked one by one.

    Args:
        metric: Whose judge is asked.
        kind: What an item is called in the prompt ("question"; all of them "questions").
        items: At least one.
        words: Of which each answer is one.
        instructions: What stands in both steps.
        alone: How it asks about one item.
        together: How it asks about all.
        sentences: What the judge points to by number, when it is asked about all in one call.
        reply: The key of the answers in that reply.

    Returns:
        One answer per item, in order.
    """
    if metric.asks_one_by_one:
        spoken = f"{', '.join(words[:-1])} or {words[-1]}"
        task = f"{alone.task} Reply with one word: {spoken}."
        data = [{**alone.data, kind: item} for item in items]
        choices = [metric.choice(alone.step, instructions, each_data, task, words) for each_data in data]
        return (yield from each([metric.ask_choice(choice) for choice in choices]))
    ids = [str(i) for i in range(1, len(items) + 1)]
    word = one_of(words)
    one = record(evidence=listing(whole(1, len(sentences))), verdict=word) if sentences is not None else word

    def read(answers: Mapping[str, Any]) -> list[Answer]:
        if sentences is None:
            return [Answer(answers[i]) for i in ids]
        return [Answer(answers[i]["verdict"], evidence=_pointed(sentences, answers[i]["evidence"])) for i in ids]

    return (
        yield from metric.ask_json(
            together.step,
            instructions,
            {**together.data, f"{kind}s": numbered(items)},
            together.task,
            record(**{reply: keyed(dict.fromkeys(ids, one))}),
            lambda value: read(value[reply]),
            names={reply: "ANSWER"} if sentences is None else None,
        )
    )


def _pointed(sentences: Sequence[Evidence], numbers: Sequence[int]) -> tuple[Evidence, ...]:
    return tuple(sentences[number - 1] for number in sorted(set(numbers)))


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


def ask_closed(
    metric: Metric,
    step: str,
    instructions: str,
    name: str,
    text: str,
    questions: Sequence[str],
    words: tuple[str, ...] = ("yes", "no"),
    *,
    tasks: tuple[str, str] | None = None,
) -> Flow[list[Answer]]:
    """Put closed questions to a text that is called `name`; `tasks`: what to do with one question, and with all."""
    one, every = tasks or (
        f"Answer the question from the {name} alone.",
        f"Answer each of the {len(questions)} questions from the {name} alone",
    )
    together = Ask(step, {name: text}, f"{every}: {', '.join(words[:-1])} or {words[-1]}.")
    return judge_items(
        metric, "question", questions, words, instructions, alone=Ask(step, {name: text}, one), together=together
    )


def list_claims(metric: Metric, instructions: str, name: str, text: str) -> Flow[tuple[str, ...]]:
    """Have the judge list the claims that a text makes; one that is made twice counts once."""
    return metric.ask_json(
        "claims",
        instructions,
        {name: text},
        f"List the claims of this {name}.",
        record(claims=listing(TEXT)),
        lambda value: distinct(value["claims"], "claim"),
    )


def check_claims(
    metric: Metric, instructions: str, claims: Sequence[str], name: str, text: str, sentences: Sequence[Evidence]
) -> Flow[list[Answer]]:
    """Have each claim checked against a text that is called `name`, of which these are the sentences."""
    return judge_items(
        metric,
        "claim",
        claims,
        CLAIM_WORDS,
        instructions,
        alone=Ask("verdict", {name: text}, f"Is the claim supported by the {name}?"),
        together=Ask(
            "verdicts",
            {name: listed(sentences)},
            f"Check each of the {len(claims)} claims. "
            f"evidence: numbers of the {name}'s sentences that show it, [] if none.",
        ),
        sentences=sentences,
        reply="verdicts",
    )


def sentences_of(sample: Sample, field: SampleField, splitter: Splitter, language: str | None) -> list[Evidence]:
    """Return the sentences of a field in order, without the white space around them.

    Offsets count from the start of the text, or of the chunk for `retrieved_contexts`. A language of None is each
    text's own, by its script.
    """
    sentences: list[Evidence] = []
    for i, text in enumerate(sample.texts(field)):
        chunk = i if field == "retrieved_contexts" else None
        for _, start, end in splitter(text, language or language_of(text)):
            piece = text[start:end]
            bare = piece.strip()
            if bare:
                left = start + len(piece) - len(piece.lstrip())
                sentences.append(Evidence(field=field, chunk=chunk, start=left, end=left + len(bare), text=bare))
    return sentences


def listed(sentences: Sequence[Evidence], first: int = 1) -> str:
    """Return the sentences as numbered lines, with a blank line between chunks."""
    blocks: list[list[str]] = []
    last: object = blocks  # equal to no chunk
    for sentence in sentences:
        if sentence.chunk != last:
            blocks.append([])
            last = sentence.chunk
        blocks[-1].append(sentence.text)
    lines: list[str] = []
    for block in blocks:
        lines.append(numbered(block, first))
        first += len(block)
    return "\n\n".join(lines)


def check_questions(name: str, questions: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return questions that a user gave as a tuple, None for None.

    Raises:
        TypeError: It is one text, or something in it is no text.
        ValueError: It is empty, or a question is blank.
    """
    if questions is None:
        return None
    if isinstance(questions, str):
        raise TypeError(f"{name}: is one str; pass a list of questions")
    checked = tuple(questions)
    if not checked:
        raise ValueError(f"{name}: is empty; pass None to have questions made from the source")
    for i, question in enumerate(cast("tuple[object, ...]", checked)):
        if not isinstance(question, str):
            raise TypeError(f"{name}[{i}]: is {type(question).__name__}, not text (str)")
        if not question.strip():
            raise ValueError(f"{name}[{i}]: is blank")
    return tuple(map(sendable, checked))
