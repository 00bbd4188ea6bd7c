"""The evaluator of LangSmith's runs."""

from typing import TYPE_CHECKING, Any

from langsmith.evaluation import EvaluationResult, EvaluationResults, RunEvaluator

from ragstone.adapters import runs
from ragstone.adapters.answering import ModelCall
from ragstone_langchain.arguments import Arguments
from ragstone_langchain.inside import KINDS
from ragstone_langchain.messages import prompt_of, said_by
from ragstone_langchain.read import holds_memory
from ragstone_langchain.searches import FINDING, found_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langsmith.schemas import Example, Run

    from ragstone_langchain.read import ReadingOptions


class RagRunEvaluator(RunEvaluator):
    """A `RagEvaluator` as LangSmith's `RunEvaluator`; made by `RagEvaluator.as_run_evaluator`.

    An example's outputs are the reference. Contexts that are not in a run's outputs are taken from its `child_runs`,
    where they are loaded.
    """

    def __init__(
        self,
        keys: list[str],
        result: "Callable[[Arguments], dict[str, Any]]",
        aresult: "Callable[[Arguments], Awaitable[dict[str, Any]]]",
        reading: "ReadingOptions",
    ) -> None:
        self._keys, self._result, self._aresult, self._reading = keys, result, aresult, reading

    @property
    def feedback_keys(self) -> list[str]:
        """The keys of its results, one for each metric."""
        return self._keys

    def evaluate_run(
        self,
        run: "Run",
        example: "Example | None" = None,
        evaluator_run_id: object = None,  # noqa: ARG002
    ) -> EvaluationResult | EvaluationResults:
        """Score a run."""
        return _langsmith_result(self._result(self._arguments_of(run, example)))

    async def aevaluate_run(
        self,
        run: "Run",
        example: "Example | None" = None,
        evaluator_run_id: object = None,  # noqa: ARG002
    ) -> EvaluationResult | EvaluationResults:
        """Score a run on the running event loop."""
        return _langsmith_result(await self._aresult(self._arguments_of(run, example)))

    # Any: LangSmith's and LangChain's own classes of runs have in common what is read here.
    def _arguments_of(self, run: Any, example: "Example | None") -> Arguments:  # noqa: ANN401
        inside = tuple(_recorded_run(run, self._reading).inside)
        reference = None if example is None else example.outputs
        return Arguments(run.inputs, run.outputs, reference, inside=inside, error=run.error)


def _langsmith_result(result: dict[str, Any]) -> EvaluationResult | EvaluationResults:
    if "results" in result:
        return EvaluationResults(results=[EvaluationResult(**each) for each in result["results"]])
    return EvaluationResult(**result)


def _recorded_run(run: Any, reading: "ReadingOptions") -> runs.Run:  # noqa: ANN401
    """Return a traced run as a handler would have recorded it."""
    failed = None if run.error is None else RuntimeError(run.error)
    kind, given = KINDS.get(run.run_type, "chain"), run.inputs if holds_memory(run.inputs) else None
    recorded = runs.Run(run.id, kind, run.name, given, error=failed, open=False)
    if kind == "model":
        recorded.call = ModelCall(prompt_of([*run.inputs.values()]), said_by(run.outputs))
    children = sorted(run.child_runs or (), key=lambda child: child.start_time.timestamp())
    recorded.inside = [_recorded_run(child, reading) for child in children]
    if run.outputs is not None and kind in FINDING:
        recorded.output = found_by(recorded, _output_of_run(run), reading.retriever_tools, reading.id_key)
    return recorded


def _output_of_run(run: Any) -> object:  # noqa: ANN401
    """The output of a run, out of the mapping in which LangSmith packs what is none."""
    outputs: dict[str, object] = run.outputs
    return outputs["output"] if list(outputs) == ["output"] else outputs
