"""What every metric shares: its facts, its checks, and the two ways to run it."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import Field

from ragstone.errors import CannotScore
from ragstone.hinting import Hinting
from ragstone.judge import LLM, Asking, DecisionModel, Embedder, Meter
from ragstone.judge_names import is_embedded
from ragstone.judging.flow import Answering, Flow, Models, arun, run
from ragstone.judging.prompt import digest, tokens
from ragstone.metrics.asking import Asker
from ragstone.metrics.models import JUDGE, WRITER, embedder_of
from ragstone.options import Count, Flag, checked, checked_fields
from ragstone.outcome import Outcome, Score, Unscored, UnscoredReason, Verdict, certainty
from ragstone.plain import is_visible
from ragstone.sample import IdField, Sample, SampleField
from ragstone.text import WINDOW

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ragstone.sources.keywords import SampleFields

ItemOrigin = Literal["judge", "text", "given"]


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of verdict that a person can give too.

    Attributes:
        kind: The kind of the metric's verdicts.
        question: The person's question about each item.
        choices: The answers; the first is the affirmative one, which `Verdict.probability` is of.
        origin: "judge": the judge made the items, so one may be missing; "text": they are passages of the sample, and
            their evidence says where; "given": they are the metric's own.

    Example:
        >>> ItemKind("part", "Does the response answer it?", ("yes", "no")).origin
        'judge'
    """

    kind: str
    question: str
    choices: tuple[str, ...]
    origin: ItemOrigin = "judge"


FOLLOW_UP = {
    "question": "Given the conversation and the follow-up question, say in a few words what the follow-up question is "
    "about, then rephrase it to be a standalone question that names this, in its original language.{language}"
}
OBJECTS = frozenset({"llm", "writer", "embedder", "splitter"})
"""Options of a metric that are objects: no text gives them."""


@dataclass(frozen=True, kw_only=True)
class Metric(Hinting, Asker, ABC):
    """A configured scorer. Immutable, keeps no samples, safe to share between threads and tasks.

    To write your own, subclass it, set the class attributes and define `_flow`: a generator that yields
    rounds of requests (through `ask_choice`, `ask_json`, and `each`, `both` and `embed` of `ragstone.judging`) and
    returns `self._score(...)`. The base class adds the rest: sync and async calls, re-asks, usage and checks.

    Args:
        llm: The judge, which may stand first; its name: "local", "openai:MODEL", the URL of a server (see
            `ragstone.judge_names`); or a model object of a framework, which its integration wraps. None:
            `evaluate(..., llm=)`, an evaluator or the command line sets it later, or the metric needs no judge.
        threshold: `Score.passed` is True if the value is at least as good, by the metric's direction; None:
            `Score.passed` is None.
        writer: An LLM, given as `llm` is, that writes the texts that the metric needs (questions, claims, parts),
            where the judge is better not asked to: a decision model writes none. None: the judge, if it writes.
        asking: "together": all items in one call; "one_by_one": one item per call; "auto": what suits the judge.
        scoring: "count": hard verdicts, the published definition; "expected": the judge's probabilities in their
            place; needs "one_by_one", and the version ends in "+expected"; "auto": "expected" if items are asked
            one by one and the judge declares `gives_probabilities`, else "count". ContextRelevancy's "auto" is "count".
        max_input_tokens: Longest prompt, in estimated tokens; None: the judge's own limit, or 100,000.
        max_characters: Longest sample, all texts together; None: no limit.
        instructions: Your instructions to the judge, by step (a key of `prompts`); the version names them.
        reason: Whether the judge also says in one sentence why, for one call more: `Score.reason` ends with it.

    Attributes:
        name: The metric's name.
        asks: Its plain question, for reports; "" says nothing.
        costs: The fault of a sample with a lowered score, for reports: a clause that is true of each such sample and
            follows "In 2 of 6 samples ...". By the verdict's kind or, where one kind costs points
            in several ways, by its word. "": where no single verdict does.
        version: Changes with its prompts.
        required_fields: The sample's fields that must be there and hold something.
        prompts: The instructions by step. A request's task is the metric's name and the step.
        examples: By step, solved examples that a judge which is asked one by one reads before the texts. Your own
            `instructions` of the step leave them out.
        bounds: Lowest and highest possible value.
        higher_is_better: The direction.
        needs_llm: Whether it asks a judge. Without one, `_flow` may return its score without a `yield`.
        needs_embedder: Whether a field `embedder` of None always becomes the embedder of the judge's provider.
            Otherwise only the embedded judge fills it.
        checks_claims: Whether it asks its judge nothing but whether a text supports an item, as a claim checker says.
        has_expected: Whether `_flow` also passes `_score` an expected value. Without one, scoring is always "count".
        auto_expects: Whether scoring="auto" may use it; False if counting agrees better with people.
        neutral_options: Options that leave the score as it is, or that the version names. Scores under different values
            of any other one are neither averaged nor compared.
        follows_history: Whether the judge first rewrites a question that follows a conversation, so that `_flow` gets
            one without open references. `prompts` then needs `ragstone.metrics.base.FOLLOW_UP` as "question".

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> class Politeness(Metric):
        ...     name, version, required_fields = "politeness", "1", ("response",)
        ...     prompts = {"polite": "Is the response polite?"}
        ...     def _flow(self, sample):
        ...         request = self.choice("polite", {"response": sample.response}, "Answer yes or no.", ("yes", "no"))
        ...         answer = yield from self.ask_choice(request)
        ...         return self._score(float(answer.choice == "yes"), f"The judge said {answer.choice}.")
        >>> Politeness(llm=FakeLLM(lambda request: "yes")).score(Sample(response="Thank you.")).value
        1.0
    """

    asks: ClassVar[str] = ""
    costs: ClassVar[Mapping[str, str]] = {}
    version: ClassVar[str]
    required_fields: ClassVar[Sequence[SampleField | IdField]]
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    needs_llm: ClassVar[bool] = True
    needs_embedder: ClassVar[bool] = False
    checks_claims: ClassVar[bool] = False
    follows_history: ClassVar[bool] = False
    neutral_options: ClassVar[Set[str]] = frozenset({"max_characters", "reason", "threshold"})

    threshold: float | None = None
    max_characters: Count | None = 2_000_000
    reason: Flag = False

    if not TYPE_CHECKING:
        # Type checkers know its options.
        def __new__(cls, *given: object, **options: object) -> "Metric":  # noqa: D102 - not for users
            if len(given) > 1 or options.keys() - {each.name for each in fields(cls)}:
                # Loaded where something is wrong.
                from ragstone.renamed import check_arguments

                check_arguments(cls.__name__, cls.__init__, given, options)
            return super().__new__(cls)

    def __post_init__(self) -> None:
        for role, usual in (("llm", JUDGE), ("writer", WRITER)):
            if getattr(type(self), role) is not usual:
                # A subclass has a default of its own there, in place of the field that makes models of names.
                usual.__set__(self, getattr(self, role))
        self._state(**dict(checked_fields(self, OBJECTS)))
        self._state(**self.own_facts())
        for fact in ("name", "version", "required_fields"):
            if not hasattr(self, fact):
                raise TypeError(f"{type(self).__name__}: a metric needs the class attribute {fact}")
        checked("required_fields", self.required_fields, tuple[SampleField | IdField, ...])
        if not self.lacks_llm:
            # An embedder that cannot be made is refused here, not at the first sample.
            self._check_models(self.models)
        if self.threshold is not None:
            checked("threshold", self.threshold, Annotated[float, Field(ge=self.bounds[0], le=self.bounds[1])])
        if unknown := self.instructions.keys() - self.prompts.keys():
            steps = ", ".join(self.prompts) or "none"
            raise ValueError(f"instructions: {min(unknown)!r} is not a step; the steps are {steps}")
        if self.expects and not self.has_expected:
            raise ValueError(f"scoring='expected': {self.name} has no expected value")
        if self.expects and not self.asks_one_by_one:
            raise ValueError(
                "scoring='expected' needs probabilities, which only asking='one_by_one' gives; the judge "
                f"{self.judge.model!r} is asked about all items together"
            )
        if self.changed_prompts:
            self._state(version=f"{self.version}+{digest(self.changed_prompts)}")
        if self.expects:
            self._state(version=f"{self.version}+expected")

    def _state(self, **facts: object) -> None:
        """State what the class says otherwise, or in another type: while the metric is made, and never after."""
        vars(self).update(facts)

    def own_facts(self) -> Mapping[str, object]:
        """The attributes of the class that this metric's options make others, such as `required_fields`, by name."""
        return {}

    def _check_models(self, models: Models) -> None:
        judge = models.judge
        if self.claims_only and self.needs_llm and not self.checks_claims:
            raise ValueError(
                f"llm: {judge.model!r} is a claim checker, which cannot answer what {self.name} asks; it can judge "
                "faithfulness, context_recall, citation_support and factual_correctness"
            )
        if self.judge_writes:
            checked("llm.asking", cast("LLM", judge).asking, Asking)
        elif self.asking == "together":
            raise ValueError(f"asking='together': {judge.model!r} is a decision model; leave asking out")
        elif self.needs_writer and self.writer is None:
            raise ValueError(
                f"writer: is missing; {self.name} needs texts that {judge.model!r}, a decision model, does not "
                "write: name an LLM, or give the texts as an option where the metric has one"
            )

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:
        """Return the score by verdicts without probabilities: of the judge's in `_flow`, of a person's for labels.

        Args:
            verdicts: On all items of `item_kinds`, in the order of the items.
            sample: What they are of.
            options: The metric's options by name, as far as the formula needs them.

        Returns:
            The score; None where it is 0 of 0.

        Raises:
            NotImplementedError: The score does not follow from verdicts alone.
        """
        raise NotImplementedError

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The items that a person can judge, beside the whole sample."""
        return ()

    @cached_property
    def models(self) -> Models:
        """Who answers its requests."""
        return Models(self.judge, self.judge_embedder, cast("LLM | None", self.writer))

    @property
    def needs_writer(self) -> bool:
        """Whether some of its requests ask for texts that a decision model cannot write."""
        return False

    @cached_property
    def lacks_llm(self) -> bool:
        """Whether it asks a judge and has none yet."""
        return self.needs_llm and self.llm is None

    @cached_property
    def judge_embedder(self) -> Embedder | None:
        """The embedder, of a metric that has a field `embedder` and asks it: the given one, or that of the judge."""
        given: object = vars(self).get("embedder")
        if given is None and self.llm is None:
            return None
        if not gets_embedder(type(self), self.llm, named=given is not None):
            return None
        return embedder_of(given, self.llm)

    @property
    def given_in(self) -> str | None:
        """The key of the sample's metadata whose value the score depends on; None where it depends on no metadata."""
        return None

    @property
    def source_field(self) -> SampleField | None:
        """The field that holds the original of which the response is a summary; None where there is no original."""
        return None

    def judged_by(self, sample: Sample) -> Sequence[SampleField | IdField]:  # noqa: ARG002
        """Return the fields that the score of a sample rests on: the required ones, unless the sample decides."""
        return self.required_fields

    @property
    def source_chosen(self) -> bool:
        """Whether the user named the source field, so that an integration takes the original from nowhere else."""
        return False

    def score(
        self,
        sample: Sample | Mapping[str, Any] | None = None,
        *,
        meter: Meter | None = None,
        **fields: "Unpack[SampleFields]",
    ) -> Outcome:
        """Score one sample, blocking. Works inside a running event loop too (and blocks it).

        Args:
            sample: A sample, or a row that `evaluate` takes, such as {"question": ..., "answer": ...}.
            meter: For runners that want to know the cost even when this raises.
            **fields: In place of the sample its fields: user_input=..., response=..., retrieved_contexts=...

        Returns:
            `Score`, or `Unscored` when an input is missing or empty, the number is undefined, the judge's
            reply cannot be used, or the prompt would be too long.

        Raises:
            TypeError: `sample` is no sample and no row, or a name is no field's.
            ValueError: The row holds no sample; the message says which name is meant, or which value is no text.
            Exception: Whatever the judge's provider raises (network, authentication, rate limit).

        Example:
            >>> from ragstone import ContextRelevancy
            >>> from ragstone.testing import FakeLLM
            >>> metric = ContextRelevancy(FakeLLM(lambda request: {"ids": [1]}))
            >>> metric.score(user_input="Who wrote Emma?", retrieved_contexts=["Jane Austen. It rains."]).value
            0.5
        """
        return run(self.flow(self._given(sample, fields)), self.models, meter)

    async def ascore(
        self,
        sample: Sample | Mapping[str, Any] | None = None,
        *,
        meter: Meter | None = None,
        answering: Answering | None = None,
        **fields: "Unpack[SampleFields]",
    ) -> Outcome:
        """Score one sample on the running event loop; otherwise as `score`.

        Args:
            sample: As for `score`.
            meter: For runners that want to know the cost even when this raises.
            answering: For runners that stand between the metric and its judge: answers each request.
            **fields: In place of the sample its fields, as for `score`.
        """
        given = self._given(sample, fields)
        offload = given.characters() > WINDOW
        return await arun(self.flow(given), self.models, meter, offload=offload, answering=answering)

    def _given(self, sample: object, fields: "SampleFields") -> Sample:
        if isinstance(sample, Sample) and not fields:
            return sample
        # Loaded when first used: a sample needs no reading.
        from ragstone.sources.rows import sample_of_row

        return sample_of_row(sample, fields, self.required_fields)

    def flow(self, sample: Sample) -> Flow[Outcome]:
        """Run the algorithm on one sample, for drivers: it yields rounds of requests, returns the outcome."""
        if self.lacks_llm:
            raise TypeError(f'llm: is None; {self.name} needs a judge, such as llm="local"')
        if self.max_characters is not None and (size := sample.characters()) > self.max_characters:
            return self._unscored(
                "over_budget",
                f"the sample has {size:,} characters, the limit is {self.max_characters:,} (max_characters); "
                "shorten its texts or raise the limit",
            )
        outcome: Outcome
        follows = self.follows_history and bool(sample.history)
        try:
            self._require(sample, self.required_fields)
            flow = cast("object", self._follow(sample) if follows else self._flow(sample))
            if isinstance(flow, Score) and not self.needs_llm:
                outcome = flow
            elif isinstance(flow, Generator):
                if not self.judge_writes:
                    # Loaded when first used.
                    from ragstone.judging.decisions import in_few_requests

                    flow = in_few_requests(cast("Flow[Score]", flow), cast("DecisionModel", self.llm).most_questions)
                outcome = yield from cast("Flow[Score]", flow)
            else:
                raise TypeError(f"{type(self).__name__}._flow must be a generator that asks with `yield from ask(...)`")
        except CannotScore as cannot:
            outcome = self._unscored(cannot.reason, cannot.detail)
        if self.reason and self.needs_llm and isinstance(outcome, Score):
            outcome = yield from self._with_reason(sample, outcome)
        return outcome

    @abstractmethod
    def _flow(self, sample: Sample) -> Flow[Score] | Score:
        """Run the algorithm on a sample whose required fields hold something. May raise `CannotScore`."""

    def _follow(self, sample: Sample) -> Flow[Score]:
        """Run the algorithm on the question as it stands alone, and say which that is."""
        whole: list[SampleField | IdField] = [field for field in self.required_fields if field != "retrieved_contexts"]
        self._fits(sample, *whole)
        # Loaded when first used.
        from ragstone.metrics.history import last_turns, standalone

        if self.has_writer:
            question = yield from standalone(self, sample)
        else:
            question = f"{last_turns(sample.history)}\nuser: {sample.user_input or ''}"
        score = yield from cast("Flow[Score]", self._flow(sample.model_copy(update={"user_input": question})))
        if not self.has_writer:
            return score
        taken = Verdict(id="0", kind="asked", text=question, verdict="taken_as")
        reason = f"{score.reason} The question was taken as: {question}"
        return score.model_copy(update={"reason": reason, "verdicts": (*score.verdicts, taken)})

    def _with_reason(self, sample: Sample, score: Score) -> Flow[Score]:
        """Add why, in the judge's words; what cannot be asked for or read is left out."""
        # Loaded when first used.
        from ragstone.metrics.why import ask_why

        texts = {str(name): "\n".join(sample.texts(name)) for name in self.judged_by(sample)}
        try:
            words = yield from ask_why(self, texts, score.verdicts)
        except CannotScore:
            return score
        return score.model_copy(update={"reason": f"{score.reason} In the judge's words: {words}"}) if words else score

    def _require(self, sample: Sample, fields: Sequence[SampleField | IdField]) -> None:
        """Refuse a sample without one of the fields, or with nothing to see in it."""
        for name in fields:
            texts = sample.texts(name)
            # A search may find nothing.
            if name == "retrieved_ids" and name in sample.model_fields_set:
                continue
            if not texts and (name != "retrieved_contexts" or name not in sample.model_fields_set):
                raise CannotScore("missing_input", f"{name}: is missing; {self.name} needs it")
            if not any(map(is_visible, texts)):
                raise CannotScore("empty_input", f"{name}: has no visible text; {self.name} needs it")

    def _fits(self, sample: Sample, *fields: SampleField | IdField) -> None:
        """Refuse texts that a later prompt could not hold, before anything is spent."""
        limit = self.input_limit
        for name in fields:
            if (size := tokens(*sample.texts(name))) > limit:
                raise CannotScore(
                    "over_budget", f"{name}: has about {size:,} tokens; a prompt may have {limit:,} (max_input_tokens)"
                )

    def _score(
        self,
        value: float | None,
        reason: str,
        *,
        expected: float | None = None,
        breakdown: Mapping[str, float] | None = None,
        verdicts: Sequence[Verdict] = (),
        shares: str = "",
    ) -> Score:
        parts = dict(breakdown or {})
        if expected is not None:
            if value is not None:
                parts["count"] = value
            parts["expected"] = expected
            reason = f"{reason.rstrip('.')}{shares or self._by_shares(value, expected, verdicts)}."
            value = expected if self.expects else value
        elif self.expects:
            raise CannotScore("undefined", "scoring='expected': the metric has no expected value (0 of 0)")
        if value is None:
            raise CannotScore("undefined", reason)
        low, high = self.bounds
        if not low <= value <= high:
            raise ValueError(f"{self.name}: the value {value!r} is outside the metric's bounds {low} to {high}")
        return Score(
            metric=self.name,
            # The sum makes 0.0 of -0.0.
            value=value + 0.0,
            passed=None if self.threshold is None else self.reaches(value, self.threshold),
            reason=reason,
            breakdown={name: part + 0.0 for name, part in parts.items()},
            verdicts=tuple(verdicts),
            version=self.version,
        )

    def _by_shares(self, value: float | None, expected: float, verdicts: Sequence[Verdict]) -> str:
        """How sure the judge is, behind a reason; of several items, the score that comes of it beside the count."""
        if len(verdicts) == 1 and (sure := certainty(verdicts[0])):
            return f"; the judge is {sure} sure"
        if not self.expects:
            return ""
        counted = "undefined" if value is None else f"{value:.2f}"
        return f". Weighed by how sure the judge is of each, the score is {expected:.2f} (counted: {counted})"

    def reaches(self, value: float, threshold: float) -> bool:
        """Whether a value is as good as a threshold or better, by the metric's direction."""
        return value >= threshold if self.higher_is_better else value <= threshold

    def _unscored(self, reason: UnscoredReason, detail: str) -> Unscored:
        return Unscored(metric=self.name, reason=reason, detail=detail, version=self.version)


def gets_embedder(metric: type[Metric], llm: object, *, named: bool) -> bool:
    """Whether a metric needs an embedder, or takes the one that the user named or that goes with the judge."""
    if getattr(llm, "claims_only", False):
        # A claim checker judges no metric that embeds; that is said when the metric is made.
        return False
    return metric.needs_embedder or (hasattr(metric, "embedder") and (named or is_embedded(llm)))
