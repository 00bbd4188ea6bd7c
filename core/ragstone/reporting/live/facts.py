"""What a page shows, as plain data: gathered from a database here, or from anywhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragstone.reporting.live.figures import Estimate


@dataclass(frozen=True, slots=True)
class Bucket:
    """The scores of one stretch of time. `starts_at` is in seconds since 1970 (UTC)."""

    starts_at: int
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Bin:
    """The scores within [low, high): how many, and their share of the traffic (within [0, 1])."""

    low: float
    high: float
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Reason:
    """Why outcomes are unscored: a word, how many, and one of them."""

    reason: str
    count: int
    sample_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class Item:
    """One verdict. `costs` says whether it lowers the score; None where that is not known.

    Attributes:
        name: Kind and id: "claim 3".
        word: The verdict.
        text: What was judged, cut; "" where texts are not stored.
        note: What else is known of it, such as a cosine or a place in the sample.
        costs: Whether it lowers the score.
    """

    name: str
    word: str
    text: str
    note: str
    costs: bool | None


@dataclass(frozen=True, slots=True)
class Passage:
    """A text of the sample, cut to its beginning, with the places in it that cost the score.

    Attributes:
        name: The field, with the number of the context: "retrieved_contexts[0]".
        text: Its beginning.
        length: How many characters all of it has.
        marks: (start, end) in order, without overlap, within `text`.
        beyond: How many marked places the cut leaves out.
    """

    name: str
    text: str
    length: int
    marks: tuple[tuple[int, int], ...] = ()
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Low:
    """A sample with one of the lowest scores, and what cost it.

    Attributes:
        sample_id: Its id.
        value: Its score.
        passed: Whether that reached the metric's threshold; None without one.
        at: When it was submitted, in seconds since 1970 (UTC); None where that is not known.
        why: The score's sentence.
        parts: The parts of the score by name.
        items: The verdicts that cost it (all of them where that is not known), the first few.
        more: How many further ones there are.
        passages: Its texts; empty where they are not stored.
        left_out: How many of its retrieved contexts are not among them.
    """

    sample_id: str
    value: float
    passed: bool | None
    at: float | None
    why: str
    parts: tuple[tuple[str, float], ...] = ()
    items: tuple[Item, ...] = ()
    more: int = 0
    passages: tuple[Passage, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """The outcomes of one metric in one version by one judge: what may be averaged together.

    Attributes:
        metric: The metric's name.
        version: Its version.
        judge: The judge's model.
        scored: How many scores there are.
        unscored: How many samples have none.
        estimate: Their mean; None where nothing was scored.
        weighted: Whether samples had different chances to be chosen, so that they weigh differently.
        passed: The share that reached the threshold, within [0, 1]; None without a threshold.
        axis: The ends of the axis that holds all scores.
        distribution: How the scores spread over it.
        series: The scores over time.
        reasons: Why the others are unscored, most frequent first.
        lowest: The lowest scores, lowest first.
        first: When the first sample was submitted, in seconds since 1970 (UTC); None where that is not known.
        last: When the last one was, likewise.
        more: Further figures: name, figure, what is said in small print.
    """

    metric: str
    version: str
    judge: str
    scored: int
    unscored: int
    estimate: Estimate | None
    weighted: bool = False
    passed: float | None = None
    axis: tuple[float, float] = (0.0, 1.0)
    distribution: tuple[Bin, ...] = ()
    series: tuple[Bucket, ...] = ()
    reasons: tuple[Reason, ...] = ()
    lowest: tuple[Low, ...] = ()
    first: float | None = None
    last: float | None = None
    more: tuple[tuple[str, str, str], ...] = ()


@dataclass(slots=True)
class Cost:
    """What judging cost in one stretch of time.

    Attributes:
        outcomes: Scored and unscored.
        llm_calls: Calls to the judge.
        embed_calls: Calls to the embedder.
        input_tokens: Those that providers told.
        output_tokens: Likewise.
        untold: How many outcomes the provider did not tell all tokens of.
    """

    outcomes: int = 0
    llm_calls: int = 0
    embed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    untold: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A process's counters, in evaluations (one sample by one metric). Times are in seconds since 1970 (UTC)."""

    process: str
    at: float
    started_at: float
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    longest: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a page is made of.

    Attributes:
        source: Where it was read, as a person may see it (no password).
        since: Samples submitted before were left out; None: all were read. Seconds since 1970 (UTC), as all times.
        first: When the first sample was submitted; None for none.
        last: When the last one was.
        width: How many seconds each bucket of `Group.series` spans.
        groups: By metric, newest first within one.
        costs: What judging cost, by when a stretch of time begins.
        cost_width: How many seconds each of these spans.
        queues: The processes, newest first.
        outcomes: How many outcomes it is of.
    """

    source: str
    since: float | None = None
    first: float | None = None
    last: float | None = None
    width: int = 3_600
    groups: tuple[Group, ...] = ()
    costs: Mapping[int, Cost] = field(default_factory=dict[int, Cost])
    cost_width: int = 86_400
    queues: tuple[Queue, ...] = ()
    outcomes: int = 0
