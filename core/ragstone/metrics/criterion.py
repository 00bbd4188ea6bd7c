"""Criterion: a question of your own about a sample, with a fixed list of answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast, get_args

from ragstone.judging import Answer, Flow, listing, one_of, record, whole
from ragstone.judging.prompt import digest
from ragstone.metrics.asking import ask_word, listed, pointing
from ragstone.metrics.base import FOLLOW_UP, ItemKind
from ragstone.metrics.claims import SplittingMetric
from ragstone.options import Share, checked
from ragstone.outcome import Evidence, Score, Verdict
from ragstone.sample import Sample, SampleField

_CALLED: Mapping[SampleField, str] = {
    "user_input": "question",
    "retrieved_contexts": "contexts",
    "response": "response",
    "reference": "reference",
}


@dataclass(frozen=True)
class Criterion(SplittingMetric):
    """A yes/no or graded criterion of your own, without a class; higher is better.

        score = value of the judge's choice

    The judge sees some fields of the sample and picks one of your choices. Asked together, it names the sentences that
    show it. Asked one by one, it answers with one word, and where there are probabilities the score is their mean:

        expected = sum over the choices of probability * value

    Args:
        name: Names the metric in results, reports and files. Two criteria of one run need two names.
        question: What the judge answers, such as "Is the response polite?".
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

    name: str  # type: ignore[misc]  # pyright: ignore[reportIncompatibleVariableOverride]  # a class's, elsewhere
    question: str
    choices: Sequence[str] | Mapping[str, float] = field(default=("yes", "no"), kw_only=True, hash=False)
    sees: Sequence[SampleField] = field(default=("user_input", "response"), kw_only=True)

    version: ClassVar[str] = "1"
    has_expected: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for argument, text in (("name", self.name), ("question", self.question)):
            if not isinstance(cast("object", text), str) or not text.strip():
                raise ValueError(f"{argument}: {text!r} is not text; write Criterion(NAME, QUESTION, ...)")
        values = _values(self.choices)
        fields: object = self.sees
        if isinstance(fields, str) or not self.sees or not set(self.sees) <= set(get_args(SampleField)):
            raise ValueError(f"sees: {fields!r} may only name {', '.join(get_args(SampleField))}")
        content = {"question": self.question, "choices": repr(values), "sees": repr(tuple(self.sees))}
        facts: dict[str, object] = {
            "choices": values,
            "sees": tuple(self.sees),
            "required_fields": tuple(self.sees),
            "prompts": {"verdict": self.question, **(FOLLOW_UP if "user_input" in self.sees else {})},
            "follows_history": "user_input" in self.sees,
            "version": f"{type(self).version}+{digest(content)}",
        }
        for fact, value in facts.items():
            object.__setattr__(self, fact, value)
        super().__post_init__()

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
        words = tuple(values)
        self._fits(sample, *self.sees)
        if self.asks_one_by_one:
            data = {_CALLED[name]: "\n\n".join(sample.texts(name)) for name in self.sees}
            answer = yield from ask_word(self, "verdict", data, words)
        else:
            answer = yield from self._ask_together(sample, words)
        best = max(values, key=values.__getitem__)
        expected = None
        if answer.probabilities is not None:
            mean = sum(p * values[word] for word, p in answer.probabilities.items())
            expected = min(mean, 1.0)  # which rounding may pass
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
        )

    def _ask_together(self, sample: Sample, words: tuple[str, ...]) -> Flow[Answer]:
        data: dict[str, str] = {}
        sentences: list[Evidence] = []
        for name in self.sees:
            more = yield from self.sentences(sample, name)
            data[_CALLED[name]] = listed(more, len(sentences) + 1)
            sentences += more

        return (
            yield from self.ask_json(
                "verdict",
                data,
                f"{self.question} verdict: {', '.join(words[:-1])} or {words[-1]}. "
                "evidence: numbers of the sentences that show it, [] if none.",
                record(evidence=listing(whole(1, len(sentences))), verdict=one_of(words)),
                lambda value: pointing(value, sentences),
            )
        )


def _values(choices: object) -> dict[str, float]:
    """Return the value of each choice.

    Example:
        >>> _values(("good", "fair", "poor"))
        {'good': 1.0, 'fair': 0.5, 'poor': 0.0}
    """
    if isinstance(choices, Mapping):
        values = dict(cast("Mapping[str, float]", choices))
    elif isinstance(choices, Sequence) and not isinstance(choices, str):
        words = cast("Sequence[str]", choices)
        values = {word: 1.0 - i / max(1, len(words) - 1) for i, word in enumerate(words)}
        if len(values) < len(words):
            raise ValueError("choices: has one word twice")
    else:
        raise ValueError(
            f'choices: {choices!r} is not a list of words; write ("yes", "no") or {{"good": 1, "poor": 0}}'
        )
    for word, value in values.items():
        bare = word.replace("_", "").replace("-", "") if isinstance(cast("object", word), str) else ""
        if not bare.isalnum() or word != word.lower():
            raise ValueError(f"choices: {word!r} must be one word in lower case, such as 'yes' or 'very_good'")
        checked(f"choices[{word!r}]", value, Share)
    if len(set(values.values())) < 2:
        raise ValueError("choices: needs two words with different values")
    return {word: float(value) for word, value in values.items()}
