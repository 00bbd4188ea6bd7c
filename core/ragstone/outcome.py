"""What scoring gives back: a `Score` with its evidence, or an `Unscored` with its reason."""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from ragstone.hinting import NoNumber
from ragstone.plain import printable
from ragstone.sample import SampleField

UnscoredReason = Literal[
    "missing_input",
    "empty_input",
    "undefined",
    "judge_unparseable",
    "judge_error",
    "timeout",
    "over_budget",
    "cancelled",
]
ScoreValue = Annotated[float, Field(allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Evidence(_Frozen):
    """A passage of the sample that a verdict points to.

    Attributes:
        field: The sample's field that the passage is in.
        chunk: Index into `retrieved_contexts`, from 0; None for the other fields.
        start: First character of the passage within that text, from 0.
        end: One past its last character, so that `text == field_text[start:end]`.
        text: The passage itself.

    Example:
        >>> Evidence(field="response", start=0, end=3, text="Yes").chunk is None
        True
    """

    field: SampleField
    chunk: int | None = None
    start: int
    end: int
    text: str


class Verdict(_Frozen):
    """The judge's answer on one item.

    Attributes:
        id: The item's number within its kind, as the judge saw it ("1", "2", ...).
        kind: What was judged: "claim", "question", "sentence", ...
        text: The item's text.
        verdict: The judge's answer, one word of the metric's vocabulary.
        probability: The judge's probability of the affirmative answer, from its log-probabilities; None where
            it gave none.
        evidence: The passages that show it, possibly none.
        lowers_score: Whether it makes the score, or a part of it, lower. The metric says so; reports show these first.

    Example:
        >>> Verdict(id="1", kind="claim", text="Emma is a novel.", verdict="supported").evidence
        ()
    """

    id: str
    kind: str
    text: str
    verdict: str
    probability: Probability | None = None
    evidence: tuple[Evidence, ...] = ()
    lowers_score: bool = False


class Usage(_Frozen):
    """What one outcome cost.

    Attributes:
        llm_calls: Calls to the judge, re-asks included.
        embed_calls: Calls to the embedder.
        input_tokens: Prompt tokens as the provider counted them; None when it did not say for every call.
        output_tokens: Reply tokens, likewise.
        seconds: Wall time.

    Example:
        >>> (Usage(llm_calls=1, input_tokens=90) + Usage(llm_calls=2, input_tokens=None)).input_tokens is None
        True
    """

    llm_calls: int = 0
    embed_calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    seconds: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            llm_calls=self.llm_calls + other.llm_calls,
            embed_calls=self.embed_calls + other.embed_calls,
            input_tokens=known_sum(self.input_tokens, other.input_tokens),
            output_tokens=known_sum(self.output_tokens, other.output_tokens),
            seconds=self.seconds + other.seconds,
        )


def known_sum(a: int | None, b: int | None) -> int | None:
    """Return the sum; None where a part is not known."""
    return None if a is None or b is None else a + b


class _Shown(NoNumber, _Frozen):
    """What `print` shows as `ragstone explain` does, and a notebook, too."""

    def __str__(self) -> str:
        return "\n".join(outcome_lines(cast("Outcome", self)))

    def _repr_html_(self) -> str:
        # Loaded when a notebook shows it.
        from ragstone.text.plain import html_table

        verdicts: tuple[Verdict, ...] = getattr(self, "verdicts", ())
        title, *said = outcome_lines(cast("Outcome", self.model_copy(update={"verdicts": ()} if verdicts else {})))
        rows = [
            (f"{each.kind} {each.id}", each.verdict, certainty(each), each.text, " ".join([*verdict_lines(each)][1:]))
            for each in verdicts
        ]
        return html_table(
            title, ("item", "verdict", "sure", "text", "where"), rows, said, [each.lowers_score for each in verdicts]
        )


class Score(_Shown):
    """A number with all that it rests on. `print` shows it with its verdicts.

    Attributes:
        metric: The metric's name.
        value: The score, always finite, within the metric's `bounds`.
        passed: Whether `value` reaches the metric's threshold; None when it has none.
        reason: One sentence composed by code from the verdicts.
        breakdown: The parts of the score by name.
        verdicts: The judge's answers, one per item asked.
        usage: Calls, tokens and seconds.
        version: The metric's version; it changes with its prompts.

    Example:
        >>> print(Score(metric="demo", value=0.5, reason="1 of 2.", version="1"))
        demo  0.500
            1 of 2.
    """

    metric: str
    value: ScoreValue
    passed: bool | None = None
    reason: str
    breakdown: dict[str, ScoreValue] = Field(default_factory=dict[str, float])
    verdicts: tuple[Verdict, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    version: str


class Unscored(_Shown):
    """No number, and why. It never stands in as 0 or 1 and never enters a mean.

    Attributes:
        metric: The metric's name.
        reason: One of a fixed set of words, for counting.
        detail: A sentence with the field or the item, the fault and the way out.
        usage: The cost before the failure.
        version: The metric's version.

    Example:
        >>> outcome = Unscored(metric="demo", reason="empty_input", detail="response: is blank", version="1")
        >>> outcome.reason, outcome.value
        ('empty_input', None)
    """

    metric: str
    reason: UnscoredReason
    detail: str
    usage: Usage = Field(default_factory=Usage)
    version: str

    @property
    def value(self) -> None:
        """None: there is no number."""


Outcome = Score | Unscored


_AFFIRMATIVE = frozenset({"answer", "relevant", "supported", "useful", "yes"})
# Each is one of a pair of words.
_NEGATIVE = frozenset({"irrelevant", "no_answer", "unsupported", "useless"})
# These kinds of verdicts have no third word.
_YES_NO = frozenset({"part", "passage", "question"})
# The names of parts that are raw signals end with these.
_RAW = frozenset({"count", "expected", "least"})
# A cosine that is closer to 1 lowers nothing.
_SAME = 1e-6


def in_percent(share: float) -> str:
    """A probability as a person says it; what rounds to none or all is near it, never quite there."""
    if 0.005 <= share < 0.995:
        return f"{100 * share:.0f} %"
    return "under 1 %" if share < 0.5 else "over 99 %"


def certainty(verdict: Verdict) -> str:
    """How sure the judge is of the word that it gave, "87 %"; "" where only the probability of another one is known.

    `Verdict.probability` is that of the affirmative word.
    """
    word, of_affirmative = verdict.verdict, verdict.probability
    if of_affirmative is None:
        return ""
    # Its choices are the user's, the best one first.
    if verdict.kind == "criterion":
        return "" if verdict.lowers_score else in_percent(of_affirmative)
    if word in _AFFIRMATIVE:
        return in_percent(of_affirmative)
    of_two = word in _NEGATIVE or (word == "no" and verdict.kind in _YES_NO)
    return in_percent(1.0 - of_affirmative) if of_two else ""


def shown_parts(score: Score) -> dict[str, float]:
    """Return the parts of a score that mean something to a reader, without raw signals."""
    raw = {"noncommittal", "open", "refused"} if score.metric == "response_relevancy" else set[str]()
    return {
        name: value
        for name, value in score.breakdown.items()
        if name not in raw and name.rpartition("_")[2] not in _RAW
    }


def cause_of(score: Score) -> str | None:
    """The cause of a lower score where no single verdict is one; None where that is not known.

    Of ResponseRelevancy it is the question that the answer fits instead of the user's: the one that is least like it.
    """
    if score.metric != "response_relevancy" or any(verdict.lowers_score for verdict in score.verdicts):
        return None
    questions = [verdict.text for verdict in score.verdicts if verdict.kind == "question"]
    cosines = [value for name, value in score.breakdown.items() if name.startswith("cosine_")]
    if not cosines or min(cosines) >= 1.0 - _SAME:
        return None
    least = min(cosines)
    fits = questions[cosines.index(least)] if len(questions) == len(cosines) else ""
    what = f"“{fits}”" if fits else "one"
    return f"of the questions that the answer fits, {what} is least like the user's (similarity {least:.2f})"


def verdict_lines(verdict: Verdict, width: int = 100) -> Iterator[str]:
    """Yield a verdict, and below it the passages that it points to, as text that a terminal obeys nothing of."""
    sure = certainty(verdict)
    word = f"{verdict.verdict} ({sure} sure)" if sure else verdict.verdict
    head = f"{verdict.kind} {verdict.id}: {word}".replace("_", " ")
    yield f"{head}: {printable(verdict.text, width)}"
    for evidence in verdict.evidence:
        # As the page counts contexts.
        where = evidence.field if evidence.chunk is None else f"context {evidence.chunk + 1}"
        text = "" if evidence.text == verdict.text else f" {printable(evidence.text, width)}"
        yield f"    [{where} {evidence.start}-{evidence.end}]{text}"


def _plain(value: float) -> str:
    """A number with three digits, a count without."""
    return f"{value:.0f}" if value.is_integer() else f"{value:.3f}"


def _uncoloured(text: str, **_: object) -> str:
    return text


def outcome_lines(outcome: Outcome, *, full: bool = True, style: Callable[..., str] = _uncoloured) -> Iterator[str]:
    """Yield an outcome as lines: the number, why, and each verdict with the passages that it points to.

    Args:
        outcome: The outcome.
        full: False leaves out verdicts that did not lower the score, and all positions. Passages are always left out,
            for the score is of their sentences.
        style: Colours a text, as `click.style` does.
    """
    head = style(outcome.metric, bold=True)
    if isinstance(outcome, Score):
        passed = {True: style("  passed", fg="green"), False: style("  below its threshold", fg="red"), None: ""}
        value = style(f"{outcome.value:.3f}", bold=True)
        yield f"{head}  {value}{passed[outcome.passed]}"
        yield f"    {printable(outcome.reason)}"
        if (cause := cause_of(outcome)) is not None:
            yield f"    {printable(cause)}"
        if (parts := shown_parts(outcome)) and full:
            yield f"    {'  '.join(f'{name} {_plain(value)}' for name, value in parts.items())}"
        for verdict in outcome.verdicts:
            # A passage alone moves no score: its sentences do.
            if verdict.lowers_score or (full and verdict.kind != "passage"):
                first, *places = verdict_lines(verdict)
                yield f"    {style(first, fg='red') if verdict.lowers_score else first}"
                yield from (f"    {line}" for line in places if full)
    else:
        yield f"{head}  {style(f'unscored ({outcome.reason})', fg='yellow')}: {printable(outcome.detail)}"
