"""ragstone's half: `evaluate`. The judge answers JSON text, which is parsed and checked; the scripts of overhead.py."""

from collections.abc import Callable
from functools import partial
from typing import Any

from meter import Latency, Way, main
from overhead import ROUNDS, SCRIPT, metrics, sample

from ragstone import LLMReply, LLMRequest, Score, evaluate


class Judge:
    """Answers from the script after the latency."""

    model = "scripted"
    asking = "together"

    def __init__(self, latency: Latency) -> None:
        self._latency = latency

    def generate(self, request: LLMRequest, /) -> LLMReply:
        raise NotImplementedError("`evaluate` asks on its event loop")

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        if self._latency.seconds:
            await self._latency.wait()
        return LLMReply(SCRIPT[request.task])


def prepare(name: str, options: dict[str, Any], latency: Latency, numbers: range) -> Callable[[], None]:
    metric = next(metric for metric in metrics(Judge(latency)) if metric.name == name)
    samples = [sample(metric, i) for i in numbers]

    def run() -> None:
        outcomes = [result.outcome for result in evaluate(samples, [metric], **options).results()]
        assert len(outcomes) == len(samples)
        assert all(isinstance(outcome, Score) for outcome in outcomes)

    return run


SETTINGS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("defaults (16 calls)", {}, 16),
    ("`max_concurrency=64`", {"max_concurrency": 64}, 64),
    ('`max_concurrency=64, journal="run.db"`', {"max_concurrency": 64, "journal": "run.db"}, 64),
)
WAYS = [
    Way(name, said, partial(prepare, name, options), slots, "calls", sum(rounds))
    for name, rounds in ROUNDS.items()
    for said, options, slots in SETTINGS
]

if __name__ == "__main__":
    main(WAYS)
