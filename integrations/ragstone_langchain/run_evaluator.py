"""The evaluator of LangSmith's runs."""

from typing import TYPE_CHECKING, Any

from langsmith.evaluation import EvaluationResult, RunEvaluator

from ragstone_langchain.extraction import Arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langsmith.schemas import Example, Run

    from ragstone_langchain.evaluator import RagEvaluator


class RagRunEvaluator(RunEvaluator):
    """A `RagEvaluator` as LangSmith's `RunEvaluator`; made by `RagEvaluator.as_run_evaluator`."""

    def __init__(self, evaluator: "RagEvaluator") -> None:
        self._evaluator = evaluator

    @property
    def feedback_keys(self) -> list[str]:
        """The keys of its results: one."""
        return [self._evaluator.key]

    def evaluate_run(
        self,
        run: "Run",
        example: "Example | None" = None,
        evaluator_run_id: object = None,  # noqa: ARG002 - LangSmith's
    ) -> EvaluationResult:
        """Score a run; an example's outputs are the reference.

        Contexts that are not in the run's outputs are taken from its `child_runs`, where they are loaded.
        """
        return EvaluationResult(**self._evaluator.result(_arguments(run, example)))

    async def aevaluate_run(
        self,
        run: "Run",
        example: "Example | None" = None,
        evaluator_run_id: object = None,  # noqa: ARG002 - LangSmith's
    ) -> EvaluationResult:
        """Score a run on the running event loop; otherwise as `evaluate_run`."""
        return EvaluationResult(**await self._evaluator.aresult(_arguments(run, example)))


# Any: LangSmith's and LangChain's own classes of runs have in common what is read here.
def _arguments(run: Any, example: "Example | None") -> Arguments:  # noqa: ANN401
    reference: object = None if example is None else example.outputs
    return Arguments(run.inputs, run.outputs, reference, retrieved=retriever_outputs(run))


def retriever_outputs(run: Any) -> list[Any] | None:  # noqa: ANN401
    """Return the outputs of a run's outermost retriever runs in the order of their start; None if it has none.

    A retriever inside another one, as an ensemble or a reranker has them, found what the outer one chooses from.
    One that failed returned nothing.
    """
    return [inner.outputs for inner in _outermost_retrievers(run) if inner.outputs is not None] or None


def _outermost_retrievers(run: Any) -> "Iterator[Any]":  # noqa: ANN401
    if run.run_type == "retriever":
        yield run
        return
    for child in sorted(run.child_runs or (), key=lambda child: child.start_time.timestamp()):
        yield from _outermost_retrievers(child)
