"""A judge with a bound on the calls under way, shared by all metrics of a run."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragstone.errors import secrets_of
from ragstone.identity import identity_of
from ragstone.judge import LLM, Asking, LLMReply, LLMRequest
from ragstone.metrics import Metric


class Slots:
    """Slots for calls: for threads, and for the event loop that first waits for one.

    Args:
        count: How many calls may be under way.
    """

    def __init__(self, count: int) -> None:
        self.threads = threading.BoundedSemaphore(count)
        self.tasks = asyncio.Semaphore(count)


class BoundedLLM:
    """A judge whose calls each take a slot while they are under way.

    Args:
        llm: The judge.
        slots: What it shares with others.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> BoundedLLM(FakeLLM(lambda request: "yes"), Slots(1)).generate(LLMRequest("demo.ask", "", "", {})).text
        'yes'
    """

    def __init__(self, llm: LLM, slots: Slots) -> None:
        self._llm = llm
        self._slots = slots

    @property
    def model(self) -> str:
        """The judge's own name."""
        return self._llm.model

    @property
    def identity(self) -> "str | Mapping[str, object]":
        """What makes the judge: bounds on its calls do not."""
        return identity_of(self._llm)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The judge's keys, which are taken out of every error text."""
        return secrets_of(self._llm)

    @property
    def asking(self) -> Asking:
        """What suits the judge."""
        return self._llm.asking

    @property
    def max_input_tokens(self) -> object:
        """The judge's own limit; None where it has none."""
        return getattr(self._llm, "max_input_tokens", None)

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request once there is a slot."""
        with self._slots.threads:
            return self._llm.generate(request)

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request once there is a slot."""
        async with self._slots.tasks:
            return await self._llm.agenerate(request)


def bounded(metrics: Sequence[Metric], count: int) -> list[Metric]:
    """Return copies of the metrics whose judges have `count` calls under way at most, all together."""
    slots = Slots(count)
    return [replace(metric, llm=BoundedLLM(metric.judge, slots)) for metric in metrics]
