"""Draws: several scorings of one sample by one metric, whose requests differ by their index and by nothing else."""

from dataclasses import replace

from ragstone.judge import LLMRequest

_APART = 1_000_000  # no flow asks one question so often; in a journal for years, so that it stays what it is


def of_draw(request: LLMRequest, draw: int) -> LLMRequest:
    """Return a flow's request as the judge is asked it in a draw, counted from 0; the first one's is as it was.

    Whoever asks a judge asks it so, directly or in a provider's batch: a seed made of the index is then the same.

    Example:
        >>> request = LLMRequest(task="demo", system="", user="Why?", schema={}, sample_index=2)
        >>> [of_draw(request, draw).sample_index for draw in range(3)]
        [2, 1000002, 2000002]
    """
    return replace(request, sample_index=request.sample_index + draw * _APART) if draw else request
