"""What all metrics share."""

import math
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import ragstone
from ragstone import Outcome, Sample, Unscored
from ragstone_compat.missing import missing_name
from ragstone_compat.ragas.dataset_schema import EvaluationDataset
from ragstone_compat.shared import check_names, embedder_by_name, judge_by_name


class MetricResult(float):
    """A score; NaN where there is none.

    Attributes:
        outcome: ragstone's `Score` or `Unscored`, with verdicts and evidence.
    """

    outcome: Outcome

    @property
    def value(self) -> float:
        """The score."""
        return float(self)

    @property
    def reason(self) -> str:
        """Why it is what it is, or why there is none."""
        return self.outcome.detail if isinstance(self.outcome, Unscored) else self.outcome.reason


_ALL_TAKE = ("allowed_values", "name", "output_type")
# Names of prompts beside those that end in "_prompt".
_PROMPTS = ("nli_statements_message", "prompts", "question_generation")


def _refuse_prompts(of: type, names: Iterable[str], error: type[Exception] = NotImplementedError) -> None:
    """Refuse prompts of ragas', which would have no effect."""
    for name in names:
        if name.endswith("_prompt") or name in _PROMPTS:
            way_out = "its prompts are ragstone's; pass instructions= to a metric of ragstone"
            raise error(f"{of.__name__}.{name}: {way_out}")


class _Class(type):
    def __setattr__(cls, name: str, value: object) -> None:
        _refuse_prompts(cls, [name])
        super().__setattr__(name, value)


class _Base(metaclass=_Class):
    def __init_subclass__(cls, **facts: Any) -> None:  # noqa: ANN401 - those of the class attributes
        for fact, value in facts.items():
            setattr(cls, fact, value)
        own = not hasattr(cls, "kind") or {"_ascore", "_single_turn_ascore"} & vars(cls).keys()
        if own and cls.__module__ != __name__:
            raise TypeError(f"{cls.__name__}: a metric of your own is a subclass of ragstone.Metric")
        _refuse_prompts(cls, vars(cls))


# Scripts combine them as bases, and ask whether a metric is one.
class SingleTurnMetric(_Base):
    """What every metric is."""


class MetricWithLLM(_Base):
    """What every metric is."""


class MetricWithEmbeddings(_Base):
    """What every metric is."""


class Metric(MetricWithLLM, MetricWithEmbeddings, SingleTurnMetric):
    """A metric by ragas' name.

    Args:
        llm: The judge: what `llm_factory` or a wrapper returns, or any judge or model object that ragstone takes.
            None: that of `evaluate`, else OpenAI's where there is a key, else the embedded one.
        embeddings: The embedder; likewise.
        **options: ragas' options of this metric. Those in `takes` have an effect; prompts are refused.

    Raises:
        TypeError: ragas' metric has no such option.
        NotImplementedError: It is a prompt.
    """

    name: str
    kind: ClassVar[Any]
    takes: ClassVar[Mapping[str, object]] = {}
    # ragstone's options that ragas' metric has not.
    sets: ClassVar[Mapping[str, object]] = {}
    ignores: ClassVar[tuple[str, ...]] = ()
    fields: ClassVar[tuple[str, ...]] = ("user_input", "response", "retrieved_contexts")
    points: ClassVar[float] = 1.0

    def __init__(self, llm: object = None, embeddings: object = None, **options: object) -> None:
        name = type(self).__name__
        _refuse_prompts(type(self), options)
        check_names(name, options, (*_ALL_TAKE, *self.takes, *self.ignores))
        if embeddings is not None and not self.kind.needs_embedder:
            check_names(name, ["embeddings"], ())
        if llm is not None and embeddings is None and not self.kind.needs_llm:
            raise TypeError(f"{name}: asks no judge; name its model as embeddings=")
        self.llm, self.embeddings = llm, embeddings
        vars(self).update({**self.sets, **self.takes, **options})

    def __setattr__(self, name: str, value: object) -> None:
        _refuse_prompts(type(self), [name])
        super().__setattr__(name, value)
        vars(self).pop("_alone", None)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of what is not there
        _refuse_prompts(type(self), [name], AttributeError)
        return missing_name(__name__, name)

    @property
    def column(self) -> str:
        """The name in results."""
        return self.name

    def init(self, run_config: object = None) -> None:
        """Do nothing: a metric needs no preparation."""

    def get_prompts(self, *_: object, **__: object) -> None:
        """Refuse: prompts are ragstone's."""
        _refuse_prompts(type(self), ["prompts"])

    set_prompts = adapt_prompts = save_prompts = load_prompts = get_prompts

    def native(self, llm: object = None, embeddings: object = None, name: str = "") -> ragstone.Metric:
        """Return ragstone's metric.

        Args:
            llm: The judge where the metric has none.
            embeddings: The embedder, likewise.
            name: The name in ragstone's report, where its own is another metric's too.
        """
        kind: Any = type(self.kind.__name__, (self.kind,), {"name": name}) if name else self.kind
        options = {each: getattr(self, each) for each in (*self.sets, *self.takes)}
        judge = None
        if kind.needs_llm:
            judge = options["llm"] = judge_by_name(unwrapped(llm if self.llm is None else self.llm))
        if kind.needs_embedder:
            embedder = embeddings if self.embeddings is None else self.embeddings
            options["embedder"] = embedder_by_name(unwrapped(embedder), judge)
        metric: ragstone.Metric = kind(**options)
        return metric

    @cached_property
    def _alone(self) -> ragstone.Metric:
        return self.native()

    def result_of(self, outcome: Outcome) -> MetricResult:
        """Return an outcome as a number."""
        result = MetricResult(math.nan if isinstance(outcome, Unscored) else outcome.value * self.points)
        result.outcome = outcome
        return result

    def score(self, sample: object = None, *more: object, **fields: object) -> MetricResult:
        """Score a sample; works inside a running event loop, too.

        Args:
            sample: A `SingleTurnSample`, or a row of a data set; or the first field, as a text.
            *more: Further fields, in the order of the metric's `fields`; behind a sample without effect.
            **fields: The fields of a sample, where none is given.

        Returns:
            The score; NaN where there is none, and a line on standard error says why.

        Raises:
            RagstoneError: No judge is named, and there is none by default.
            Exception: What the judge's provider raises.
        """
        return self._said(self._alone.score(self._native(sample, more, fields)))

    async def ascore(self, sample: object = None, *more: object, **fields: object) -> MetricResult:
        """Score a sample on the running event loop; otherwise as `score`."""
        return self._said(await self._alone.ascore(self._native(sample, more, fields)))

    single_turn_score, single_turn_ascore = score, ascore

    def _native(self, sample: object, more: tuple[object, ...], fields: Mapping[str, object]) -> Sample:
        if isinstance(sample, str):
            sample = {**dict(zip(self.fields, (sample, *more), strict=False)), **fields}
        native: Sample = EvaluationDataset.from_list([sample or fields])[0].native
        return native

    def _said(self, outcome: Outcome) -> MetricResult:
        result = self.result_of(outcome)
        if math.isnan(result):
            print(f"ragstone: {self.column} is NaN ({outcome.reason}): {result.reason}", file=sys.stderr)
        return result


def unwrapped(model: object) -> object:
    """The model that a wrapper of ragas' name holds."""
    return getattr(model, "wrapped", model)
