"""The evaluator of LangSmith's runs."""

from typing import TYPE_CHECKING, Any

from langsmith.evaluation import EvaluationResult, RunEvaluator

from ragstone_langchain.extraction import Arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from langsmith.schemas import Example, Run


class RagRunEvaluator(RunEvaluator):
    """A `RagEvaluator` as LangSmith's `RunEvaluator`; made by `RagEvaluator.as_run_evaluator`.

    An example's outputs are the reference. Contexts that are not in a run's outputs are taken from its `child_runs`,
    where they are loaded.
    """

    def __init__(
        self,
        key: str,
        result: "Callable[[Arguments], dict[str, Any]]",
        aresult: "Callable[[Arguments], Awaitable[dict[str, Any]]]",
    ) -> None:
        self._key, self._result, self._aresult = key, result, aresult

    @property
    def feedback_keys(self) -> list[str]:
        """The keys of its results: one."""
        return [self._key]

    def evaluate_run(
        self,
        run: "Run",
        example: "Example | None" = None,
        evaluator_run_id: object = None,  # noqa: ARG002
    ) -> EvaluationResult:
        """Score a run."""
        return EvaluationResult(**self._result(_arguments(run, example)))

    async def aevaluate_run(
        self,
        run: "Run",
        example: "Example | None" = None,
        evaluator_run_id: object = None,  # noqa: ARG002
    ) -> EvaluationResult:
        """Score a run on the running event loop."""
        return EvaluationResult(**await self._aresult(_arguments(run, example)))


# Any: LangSmith's and LangChain's own classes of runs have in common what is read here.
def _arguments(run: Any, example: "Example | None") -> Arguments:  # noqa: ANN401
    # One that failed returned nothing.
    retrieved = [inner.outputs for inner in _outermost_retrievers(run) if inner.outputs is not None]
    return Arguments(run.inputs, run.outputs, None if example is None else example.outputs, retrieved=retrieved or None)


def _outermost_retrievers(run: Any) -> "Iterator[Any]":  # noqa: ANN401
    """Yield a run's outermost retriever runs in the order of their start.

    A retriever inside another one, as an ensemble or a reranker has them, found what the outer one chooses from.
    """
    if run.run_type == "retriever":
        yield run
        return
    for child in sorted(run.child_runs or (), key=lambda child: child.start_time.timestamp()):
        yield from _outermost_retrievers(child)
