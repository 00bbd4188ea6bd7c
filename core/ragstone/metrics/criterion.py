"""Criterion: a question of your own about a sample, with a fixed list of answers."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, cast

from pydantic import AfterValidator, BeforeValidator, Field

from ragstone.judge import Judge
from ragstone.judging import Answer, Flow
from ragstone.judging.prompt import digest
from ragstone.metrics.asking import listed, pointing, pointing_form
from ragstone.metrics.base import FOLLOW_UP, ItemKind
from ragstone.metrics.claims import SplittingMetric
from ragstone.metrics.models import JUDGE
from ragstone.options import Share, Text, checked
from ragstone.outcome import Evidence, Score, Verdict, in_percent
from ragstone.plain import printable
from ragstone.sample import Sample, SampleField

_CALLED: Mapping[SampleField, str] = {
    "user_input": "question",
    "retrieved_contexts": "contexts",
    "response": "response",
    "reference": "reference",
}


def _one_word(word: str) -> str:
    if not word.replace("_", "").replace("-", "").isalnum() or word != word.lower():
        raise ValueError("must be one word in lower case, such as 'yes' or 'very_good'")
    return word


def _values(choices: object) -> object:
    """Return the values of words, evenly spaced from 1 to 0."""
    if isinstance(choices, Mapping):
        return cast("Mapping[str, float]", choices)
    words: tuple[str, ...] = checked("choices", choices, tuple[str, ...])
    if len(set(words)) < len(words):
        raise ValueError("has one word twice")
    return {word: 1.0 - i / max(1, len(words) - 1) for i, word in enumerate(words)}


def _different(values: dict[str, float]) -> dict[str, float]:
    if len(set(values.values())) < 2:
        raise ValueError("needs two words with different values")
    return values


_Choices = Annotated[
    dict[Annotated[str, AfterValidator(_one_word)], Share], BeforeValidator(_values), AfterValidator(_different)
]
_Fields = Annotated[tuple[SampleField, ...], Field(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Criterion(SplittingMetric):
    """A yes/no or graded criterion of your own, without a class; higher is better.

        score = value of the judge's choice

    The judge sees some fields of the sample and picks one of your choices. Asked together, it names the sentences that
    show it. Asked one by one, it answers with one word, and where there are probabilities the score is their mean:

        expected = sum over the choices of probability * value

    Args:
        name: Names the metric in results, reports and files. Two criteria of one run need two names.
        question: The judge's question, such as "Is the response polite?".
        choices: The answers, from best to worst: they are worth evenly spaced values from 1 to 0. Or a mapping from
            answer to value, from 0 to 1. Each is one word of letters, digits, "_" and "-", in small letters.
        sees: The sample's fields that the judge sees. A sample that lacks one is `Unscored("missing_input")`.
        llm: The judge. See `Metric` for the options that all metrics share.
        language: Of the texts, for splitting them; None: by their script.
        splitter: Another sentence splitter.

    Returns:
        A score within [0, 1]. Breakdown: where there are probabilities `count` (the value of the choice) and
        `expected`. One verdict, of the kind "criterion", with the choice and its probability.

    Raises:
        ValueError: A name, question, choice, value or field that cannot be; the message says which.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> judge = FakeLLM(lambda request: {"evidence": [2], "verdict": "fair"})
        >>> polite = Criterion("polite", "How polite is the response?", choices=("good", "fair", "poor"), llm=judge)
        >>> polite.score(Sample(user_input="Why?", response="Look it up.")).value
        0.5
    """

    llm: Judge | str | object | None = JUDGE
    name: str = field(kw_only=False)  # type: ignore[misc]  # pyright: ignore[reportIncompatibleVariableOverride]  # a class's, elsewhere
    question: str = field(kw_only=False)
    choices: Sequence[str] | Mapping[str, float] = field(default=("yes", "no"), hash=False)
    sees: Sequence[SampleField] = ("user_input", "response")

    version: ClassVar[str] = "1"
    has_expected: ClassVar[bool] = True
    neutral_options: ClassVar[Set[str]] = SplittingMetric.neutral_options | {"name", "question", "choices", "sees"}

    def __post_init__(self) -> None:
        for option, kind in (("name", Text), ("question", Text), ("choices", _Choices), ("sees", _Fields)):
            self._state(**{option: checked(option, getattr(self, option), kind)})
        super().__post_init__()

    def own_facts(self) -> Mapping[str, object]:
        """What a class of its own would say: the fields that the judge sees, the question, a version of both."""
        values = cast("Mapping[str, float]", self.choices)
        best = " or ".join(f"“{word}”" for word, value in values.items() if value == max(values.values()))
        content = {"question": self.question, "choices": repr(self.choices), "sees": repr(self.sees)}
        follows = "user_input" in self.sees
        return {
            "required_fields": self.sees,
            "prompts": {"verdict": self.question, **(FOLLOW_UP if follows else {})},
            "follows_history": follows,
            "asks": self.question,
            "costs": {"criterion": f"“{printable(self.question, 100)}” is not answered {best}"},
            "version": f"{type(self).version}+{digest(content)}",
        }

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The question, the best answer first."""
        values = cast("Mapping[str, float]", self.choices)
        choices = tuple(sorted(values, key=lambda word: -values[word]))
        return (ItemKind("criterion", self.question, choices, "given"),)

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the value of the choice."""
        return next((options["choices"][each.verdict] for each in verdicts if each.kind == "criterion"), None)

    def _flow(self, sample: Sample) -> Flow[Score]:
        values = cast("Mapping[str, float]", self.choices)
        self._fits(sample, *self.sees)
        answer = yield from (self._alone(sample) if self.asks_one_by_one else self._together(sample))
        best = max(values, key=values.__getitem__)
        expected = None
        if answer.probabilities is not None:
            mean = sum(p * values[word] for word, p in answer.probabilities.items())
            # Rounding may pass 1.
            expected = min(mean, 1.0)
        verdict = Verdict(
            id="1",
            kind="criterion",
            text=self.question,
            verdict=answer.choice,
            probability=answer.probability(best),
            evidence=answer.evidence,
            lowers_score=values[answer.choice] < values[best],
        )
        return self._score(
            self.value_of([verdict], sample, {"choices": values}),
            f"{self.question} {answer.choice}.",
            expected=expected,
            verdicts=[verdict],
            shares=_shares(answer),
        )

    def _alone(self, sample: Sample) -> Flow[Answer]:
        data = {_CALLED[name]: "\n\n".join(sample.texts(name)) for name in self.sees}
        return self.ask_word("verdict", data, tuple(self.choices))

    def _together(self, sample: Sample) -> Flow[Answer]:
        words = tuple(self.choices)
        data: dict[str, str] = {}
        sentences: list[Evidence] = []
        for name in self.sees:
            more = yield from self.sentences(sample, name)
            data[_CALLED[name]] = listed(more, len(sentences) + 1)
            sentences += more
        task = f"{self.question} verdict: {', '.join(words[:-1])} or {words[-1]}. "
        task += "evidence: numbers of the sentences that show it, [] if none."
        form, read = pointing_form(words, len(sentences)), partial(pointing, sentences=sentences)
        return (yield from self.ask_json("verdict", data, task, form, read))


def _shares(answer: Answer) -> str:
    """How sure the judge is: of the word that it gave or, of a graded question, of each."""
    shares = answer.probabilities or {}
    if len(shares) == 2:
        return f"; the judge is {in_percent(shares[answer.choice])} sure"
    of_each = [f"{word} {in_percent(share)}" for word, share in shares.items()]
    return f"; the judge's shares: {', '.join(of_each)}" if of_each else ""
