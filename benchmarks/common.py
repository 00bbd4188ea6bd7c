"""Texts, a slow judge and a quantile that the benchmarks share."""

import time
from collections.abc import Callable, Sequence
from typing import Literal

from ragstone import LLMReply, LLMRequest

SOURCE = (
    "The 'coverage score' is calculated as the percentage of assessment questions for which both the summary and the "
    "original document provide a 'yes' answer. This method ensures that the summary not only includes key information "
    "from the original text but also accurately represents it. A higher coverage score indicates a more comprehensive "
    "and faithful summary, signifying that the summary effectively encapsulates the crucial points and details from "
    "the original content."
)
SUMMARY = (
    "The coverage score quantifies how well a summary captures and accurately represents key information from the "
    "original text, with a higher score indicating greater comprehensiveness."
)
QUESTION = "How is the coverage score calculated?"
FIVE = [str(i) for i in range(1, 6)]


class SleepyLLM:
    """Answers by a function after a fixed time."""

    model = "sleepy"
    asking: Literal["together"] = "together"

    def __init__(self, seconds: float, reply: Callable[[LLMRequest], str]) -> None:
        self._seconds, self._reply = seconds, reply

    def generate(self, request: LLMRequest, /) -> LLMReply:
        time.sleep(self._seconds)
        return LLMReply(self._reply(request), 1, 1)

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        raise NotImplementedError("a monitor asks by the sync half")


def share(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
