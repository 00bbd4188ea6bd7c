"""The metrics, by DeepEval's names."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

from ragstone import (
    AlignmentCoverage,
    ContextPrecision,
    ContextRecall,
    Criterion,
    Faithfulness,
    Metric,
    Outcome,
    Sample,
    Unscored,
    Verdict,
)
from ragstone.errors import RagstoneError
from ragstone.judge import Judge
from ragstone.sample import SampleField
from ragstone_compat.deepeval.metrics.native import RelevantShare, Uncontradicted
from ragstone_compat.deepeval.models import DeepEvalBaseLLM, OwnJudge
from ragstone_compat.deepeval.test_case import LLMTestCase
from ragstone_compat.shared import GRADES, judge_by_name

_FIELDS: Mapping[str, SampleField] = {
    "input": "user_input",
    "actual_output": "response",
    "expected_output": "reference",
    "context": "retrieved_contexts",
    "retrieval_context": "retrieved_contexts",
}
_THEIRS: Mapping[str, str] = {ours: theirs for theirs, ours in _FIELDS.items()}
_RESULT = ("score", "score_breakdown", "reason", "success", "error", "outcome", "verbose_logs")
_CALLED = (
    'The input is called "question" here, the actual output "response", the expected output "reference", the context '
    'and the retrieval context "contexts".'
)


@dataclass(kw_only=True, eq=False)
class BaseMetric:
    """A metric; a subclass with `measure` is one of your own.

    Args:
        threshold: The least score that passes; None: nothing passes or fails.
        model: The judge: a model of OpenAI by name, one of ragstone's names ("local", "langchain:..."), a
            `DeepEvalBaseLLM`, or any judge or model object that ragstone takes. None: OpenAI's where there is a key,
            else the embedded one.
        include_reason: Without effect: code writes the reason, and it costs no call; likewise `verbose_mode`
            (`print(metric.outcome)` shows the verdicts).
        async_mode: Whether a `DeepEvalBaseLLM` is asked by `a_generate`, or by `generate`.
        strict_mode: The threshold is 1, and the score is 0 if it is less.
        verbose_mode: Without effect.
        flaky: Whether a test case passes though it fails by this metric.
        evaluation_template: DeepEval's prompts, which are refused: ragstone has its own.

    Attributes:
        kind: ragstone's metric; None of a metric of your own.
        score: Of the last test case that was measured; NaN where it is 0 of 0, None where it has none.
        score_breakdown: The parts of the score by name.
        reason: Why the score is what it is, by the verdicts that lowered it.
        success: Whether the score reaches the threshold.
        error: Why there is no score.
        outcome: ragstone's `Score` or `Unscored`, with verdicts and evidence.
        evaluation_model: The judge's name.
        verbose_logs: The outcome as text.
        evaluation_cost: None: prices are not known here.
    """

    kind: ClassVar[Any] = None
    _options: ClassVar[Mapping[str, object]] = {}

    threshold: float | None = 0.5
    model: Any = None
    include_reason: bool = True
    async_mode: bool = True
    strict_mode: bool = False
    verbose_mode: bool = False
    flaky: bool = False
    evaluation_template: object = None

    score = score_breakdown = reason = success = error = outcome = evaluation_model = verbose_logs = cast("Any", None)
    evaluation_cost: ClassVar[None] = None

    def __init_subclass__(cls, kind: Any = None, **options: object) -> None:  # noqa: ANN401 - a class of metrics
        if kind is not None:
            cls.kind, cls._options = kind, options

    def __post_init__(self) -> None:
        self.threshold = 1.0 if self.strict_mode else self.threshold

    def __setattr__(self, name: str, value: object) -> None:
        if name == "evaluation_template" and value is not None and self.kind is not None:
            raise NotImplementedError(
                f"{self.__name__}: its prompts are ragstone's; pass instructions= to a metric of ragstone"
            )
        super().__setattr__(name, value)
        if name in ("async_mode", "model"):
            vars(self).pop("judge", None)

    @property
    def __name__(self) -> str:
        return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(self).__qualname__.removesuffix("Metric"))

    def is_successful(self) -> bool | None:
        """Whether the score reaches the threshold; None without a threshold."""
        passed = self.score is not None and self.score >= (self.threshold or 0.0)
        self.success = None if self.threshold is None else passed
        return None if self.threshold is None else passed

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of ragstone on the last test case."""
        return list(getattr(self.outcome, "verdicts", ()))

    @property
    def statements(self) -> list[str]:
        """What they are on: statements or claims."""
        return [each.text for each in self.verdicts]

    claims = statements

    def native(self) -> Metric:
        """Return ragstone's metric."""
        return cast("Metric", self.kind(llm=self.judge, **self._options))

    @cached_property
    def judge(self) -> Judge:
        """Who is asked."""
        is_own = isinstance(self.model, DeepEvalBaseLLM)
        return judge_by_name(OwnJudge(self.model, self.async_mode) if is_own else self.model)

    def asked_alone(self) -> "BaseMetric":
        """Return a copy whose `async_mode` is False."""
        alone = copy(self)
        alone.async_mode = False
        return alone

    def sample_of(self, test_case: LLMTestCase) -> Sample:
        """Return a test case as a sample: what a GEval sees of it, or all but the context.

        Raises:
            TypeError: It is no test case.
            NotImplementedError: There are images in it.
        """
        if not isinstance(cast("object", test_case), LLMTestCase):
            kind = type(test_case).__name__
            raise TypeError(f"{self.__name__}: measures one LLMTestCase, not a {kind}; evaluate takes a list of them")
        if test_case.multimodal:
            raise NotImplementedError(f"{self.__name__}: ragstone scores texts, not images")
        named = [param.value for param in getattr(self, "evaluation_params", ())]
        names = named or [name for name in _FIELDS if name != "context"]
        return Sample.model_validate({_FIELDS[name]: getattr(test_case, name) for name in names})

    def measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        """Score a test case; works inside a running event loop, too.

        Returns:
            The score; NaN where it is 0 of 0, and `error` and a line on stderr say of what.

        Raises:
            RagstoneError: A field is missing or empty, a text is too long, or the judge's replies cannot be used.
            Exception: What the judge's provider raises.
        """
        vars(self).update(dict[str, Any].fromkeys(_RESULT))
        return self._measured(self.native().score(self.sample_of(test_case)))

    async def a_measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        """Score a test case on the running event loop; otherwise as `measure`."""
        vars(self).update(dict[str, Any].fromkeys(_RESULT))
        return self._measured(await self.native().ascore(self.sample_of(test_case)))

    def set_outcome(self, outcome: Outcome) -> "BaseMetric":
        """Set the attributes by an outcome, and return the metric."""
        self.outcome, self.score, self.reason, self.error = outcome, outcome.value, outcome.reason, None
        self.evaluation_model, self.verbose_logs, self.score_breakdown = self.judge.model, str(outcome), None
        if isinstance(outcome, Unscored):
            field, colon, rest = outcome.detail.partition(":")
            self.error = self.reason = f"{_THEIRS.get(field, field)}{colon}{rest}"
            if outcome.reason == "undefined":
                self.score = math.nan
        else:
            self.score = 0.0 if self.strict_mode and outcome.value < 1.0 else outcome.value
            self.score_breakdown = {name.capitalize(): part for name, part in outcome.breakdown.items()}
            against = [each for each in outcome.verdicts if each.lowers_score and each.kind != "criterion"]
            self.reason = " ".join([outcome.reason, *(f"{each.text}: {each.verdict}." for each in against)])
        self.is_successful()
        return self

    def _measured(self, outcome: Outcome) -> float:
        self.set_outcome(outcome)
        if self.score is None:
            raise RagstoneError(f"{self.__name__}: {self.error}")
        if math.isnan(self.score):
            print(f"ragstone: {self.__name__} is NaN: {self.error}", file=sys.stderr)
        return float(self.score)


class AnswerRelevancyMetric(BaseMetric, kind=RelevantShare):
    """Share of the answer's statements that are relevant to the input (`RelevantShare`)."""


class ContextualRelevancyMetric(BaseMetric, kind=RelevantShare, of="retrieved_contexts"):
    """Share of the retrieved sentences that are relevant to the input (`RelevantShare`)."""


class ContextualPrecisionMetric(BaseMetric, kind=ContextPrecision, against="reference"):
    """Whether what is useful for the expected output was retrieved first (`ragstone.ContextPrecision`)."""


class ContextualRecallMetric(BaseMetric, kind=ContextRecall):
    """Share of the expected output that the retrieved contexts support (`ragstone.ContextRecall`)."""


@dataclass(kw_only=True, eq=False)
class FaithfulnessMetric(BaseMetric, kind=Uncontradicted):
    """Share of the answer's claims that the retrieved contexts do not contradict (`Uncontradicted`).

    Args:
        penalize_ambiguous_claims: Whether a claim must be supported (`ragstone.Faithfulness`).
        truths_extraction_limit: Without effect: claims are compared with the contexts themselves.
    """

    penalize_ambiguous_claims: bool = False
    truths_extraction_limit: int | None = None

    def native(self) -> Metric:
        """Return ragstone's metric."""
        return Faithfulness(llm=self.judge) if self.penalize_ambiguous_claims else super().native()


@dataclass(kw_only=True, eq=False)
class SummarizationMetric(BaseMetric, kind=AlignmentCoverage):
    """The lower of a summary's truth to the input and its coverage of it (`ragstone.AlignmentCoverage`).

    Args:
        n: How many questions the judge writes where none are given.
        assessment_questions: Closed questions; the right answer to each is yes.
        truths_extraction_limit: Without effect: claims are compared with the input itself.
    """

    n: int = 5
    assessment_questions: Sequence[str] | None = None
    truths_extraction_limit: int | None = None

    def native(self) -> AlignmentCoverage:
        """Return ragstone's metric."""
        questions = self.assessment_questions or None
        return AlignmentCoverage(llm=self.judge, n_questions=self.n, assessment_questions=questions)


class Rubric(NamedTuple):
    """What the grades from one to another mean, from 0 to 10."""

    score_range: tuple[int, int]
    expected_outcome: str


@dataclass(eq=False)
class GEval(BaseMetric, kind=Criterion):
    """A criterion of your own, graded from 0 to 10; higher is better.

        score = (grade - lowest grade) / (highest grade - lowest grade)

    The grades are words ("zero" to "ten"), because a number may be two tokens. Where the judge gives probabilities,
    the score is their mean. In `strict_mode` the judge says yes or no.

    Args:
        name: Names the metric in results.
        evaluation_params: The fields that the judge sees; not both context and retrieval context.
        criteria: The criterion.
        evaluation_steps: What the judge goes through, in place of the criterion. DeepEval's judge writes them where
            they are missing; here it does not.
        rubric: What the grades mean; by default from 0 to 10.
        top_logprobs: Without effect.
    """

    name: str
    evaluation_params: Sequence[Enum] = ()
    criteria: str | None = None
    evaluation_steps: Sequence[str] | None = None
    rubric: Sequence[Rubric] | None = None
    top_logprobs: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if unread := [param.value for param in self.evaluation_params if param.value not in _FIELDS]:
            raise NotImplementedError(
                f"{self.__name__}: it sees {', '.join(_FIELDS)}, not {', '.join(unread)}: ragstone scores answers and "
                "retrieval, not the calls of agents"
            )

    @property
    def __name__(self) -> str:
        return f"{self.name} [GEval]"

    def native(self) -> Metric:
        """Return ragstone's metric."""
        sees: list[SampleField] = [_FIELDS[param.value] for param in self.evaluation_params]
        if len(set(sees)) < len(sees):
            raise ValueError("evaluation_params: name context or retrieval_context, not both")
        rubric = sorted(self.rubric or [Rubric((0, 0), "not at all"), Rubric((10, 10), "fully")])
        low, high = rubric[0].score_range[0], rubric[-1].score_range[1]
        choices = {GRADES[grade]: (grade - low) / (high - low) for grade in range(low, high + 1)}
        lines = [self.criteria or "", *(self.evaluation_steps or ()), _CALLED]
        if self.strict_mode:
            choices = {"yes": 1.0, "no": 0.0}
        else:
            spans = [" to ".join(dict.fromkeys(GRADES[end] for end in each.score_range)) for each in rubric]
            lines += [f"{span}: {each.expected_outcome}" for span, each in zip(spans, rubric, strict=True)]
        question = f"{self.name}: {'is it met' if self.strict_mode else 'how far is it met'}?"
        text = "\n".join([question, *lines])
        return Criterion(
            self.name, question, choices=choices, sees=sees, llm=self.judge, instructions={"verdict": text}
        )
