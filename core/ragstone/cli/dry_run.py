"""`ragstone score --dry-run`: what a run would take. No judge is asked, loaded, or even there."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ragstone.batch.estimation.estimate import estimate
from ragstone.cli.judges import is_local, model_of
from ragstone.judge import LLM, Asking, LLMReply, LLMRequest
from ragstone.metrics import Metric
from ragstone.sample import BadLine, Row
from ragstone.text.plain import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Nobody:
    """Stands where a judge and an embedder would; is never asked anything.

    Args:
        model: What it would be called.
    """

    asking: Asking = "together"

    def __init__(self, model: str) -> None:
        self.model = model

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Refuse."""
        raise AssertionError(f"a dry run asks nobody, not even {request.task}")

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Refuse."""
        return self.generate(request)

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Refuse."""
        raise AssertionError(f"a dry run embeds nothing, not even {len(texts)} texts")

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Refuse."""
        return self.embed(texts)


def unasked(spec: str) -> LLM:
    """Return what has the properties of the judge that `--llm` names; the embedded one's file need not be there.

    Raises:
        click.UsageError: It names none.

    Example:
        >>> unasked("openai:gpt-5-mini").model, unasked("local").asking
        ('gpt-5-mini', 'one_by_one')
    """
    if is_local(spec):
        from ragstone.local import LocalLLM

        return LocalLLM(spec.removeprefix("local").removeprefix(":") or None)  # loaded by its first call
    return Nobody(model_of("--llm", spec))


def show_estimate(
    rows: Iterable[Row | BadLine], metrics: Sequence[Metric], repeat: int, price: tuple[float, float] | None
) -> int:
    """Print what a run would take; return the exit status: 2 where a row, or every row, holds no sample.

    Args:
        rows: The input.
        metrics: What would be scored.
        repeat: Scorings of each sample by each metric.
        price: Of a million prompt tokens, and of a million reply tokens.
    """
    input_price, output_price = price or (None, None)
    found = estimate(_told(rows), metrics, repeat=repeat, input_price=input_price, output_price=output_price)
    click.echo(str(found))
    if not found.samples:
        click.echo("No sample: no line of the input holds one. Each line must be one JSON object.", err=True)
    return 2 if found.bad_rows or not found.samples else 0


def _told(rows: Iterable[Row | BadLine]) -> Iterator[Row | BadLine]:
    for row in rows:
        if isinstance(row, BadLine):
            click.echo(f"line {row.line}: {printable(row.problem)} (skipped)", err=True)
        yield row
