"""What was handed over to an evaluator, and where it was told to look in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragstone.sample import Sample

FieldMapping = Mapping[str, str]
FieldFunction = Callable[..., Sample | Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Given:
    """What was handed over, as LangSmith names it.

    Attributes:
        inputs: What the app was asked.
        outputs: What it returned.
        reference_outputs: What it should have returned; read only where `fields` says so.
        context: What was retrieved, where the caller has it apart.
        retrieved: What each of the run's retrievers returned; counts where `context` and `outputs` have no contexts.

    Example:
        >>> Given("Why?", {"answer": "So."}).context is None
        True
    """

    inputs: object = None
    outputs: object = None
    reference_outputs: object = None
    context: object = None
    retrieved: Sequence[object] | None = None
