"""What ragstone's evaluators cost in LlamaIndex, beside LlamaIndex's own: CPU per sample, samples per second, imports.

    python benchmarks/with_llama_index.py        # needs ragstone[llama-index]

All evaluators run through BatchEvalRunner on the same texts with the same judge: a LlamaIndex LLM in this process that
answers at once, or after a fixed time, in the form that is asked for. Figures are medians over interleaved repeats of
one run: on a busy machine trust the ratios. nltk refuses hard links: install with UV_LINK_MODE=copy if by uv.
"""

import argparse
import asyncio
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NoReturn

from common import QUESTION, SOURCE, SUMMARY, Pace
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.evaluation import (
    AnswerRelevancyEvaluator,
    BaseEvaluator,
    BatchEvalRunner,
    ContextRelevancyEvaluator,
    FaithfulnessEvaluator,
)
from llama_index.core.llms import LLM
from llama_index.core.llms.callbacks import llm_chat_callback
from overhead import SCRIPT
from pydantic import PrivateAttr

import ragstone_llama_index as ours
from ragstone import Metric, Sample, Score
from ragstone.testing import FakeEmbedder, FakeLLM

VERDICT = "YES. It is relevant. Feedback: good.\n[RESULT] 2"  # in the form that LlamaIndex's evaluators look for


class Judge(LLM):
    """Knows what is asked by a word of the prompt, as the scripted judge of overhead.py does by the task."""

    _pace: Pace = PrivateAttr()

    def __init__(self, seconds: float = 0.0, in_flight: int = 1_000) -> None:
        super().__init__()
        self._pace = Pace(seconds, in_flight)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, model_name="benchmark", context_window=128_000)

    def _say(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        user = messages[-1].content or ""
        reply = next((SCRIPT[task] for phrase, task in ASKED.items() if phrase in user), VERDICT)
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=reply))

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: object) -> ChatResponse:  # noqa: ARG002
        return self._say(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: object) -> ChatResponse:  # noqa: ARG002
        if self._pace.seconds:
            await self._pace.wait()
        return self._say(messages)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> NoReturn:
        raise NotImplementedError("a chat model")

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: object) -> NoReturn:
        raise NotImplementedError("a chat model")

    stream_chat = astream_chat = stream_complete = astream_complete = complete  # type: ignore[assignment]


ASKED = {
    "that this response answers": "response_relevancy.questions",
    "keyphrases of this text": "summarization_score.questions",
    "from the summary alone": "summarization_score.answers",
    "claims of this summary": "alignment_coverage.claims",
    "yes/no questions on the facts": "alignment_coverage.questions",
    "Check each of the": "alignment_coverage.verdicts",
    "from the text alone": "alignment_coverage.source_answers",
    "sentences needed to answer": "context_relevancy.sentences",
}


def own(llm: LLM | FakeLLM) -> dict[str, ours.MetricEvaluator]:
    return {
        "response_relevancy": ours.MetricEvaluator("response_relevancy", llm, FakeEmbedder(384)),
        "summarization_score": ours.MetricEvaluator("summarization_score", llm),
        "alignment_coverage": ours.MetricEvaluator("alignment_coverage", llm),
        "context_relevancy": ours.MetricEvaluator("context_relevancy", llm),
    }


def theirs(llm: LLM) -> dict[str, BaseEvaluator]:
    kinds = (AnswerRelevancyEvaluator, ContextRelevancyEvaluator, FaithfulnessEvaluator)
    return {f"LlamaIndex {kind.__name__}": kind(llm) for kind in kinds}


def texts(n: int, start: int) -> list[tuple[str, str, list[str]]]:
    """Return texts of their own for each sample: nothing can be reused from the last one."""
    return [(f"{QUESTION} ({i})", f"{SUMMARY} ({i})", [f"{SOURCE} Text number {i}."]) for i in range(start, start + n)]


async def batch(evaluator: BaseEvaluator, given: list[tuple[str, str, list[str]]], workers: int = 2) -> None:
    queries, responses, contexts = map(list, zip(*given, strict=True))
    runner = BatchEvalRunner({"it": evaluator}, workers=workers)
    results = await runner.aevaluate_response_strs(queries=queries, response_strs=responses, contexts_list=contexts)
    for result in results["it"]:
        assert not result.invalid_result, result.invalid_reason


async def alone(metric: Metric, given: list[tuple[str, str, list[str]]]) -> None:
    for query, response, contexts in given:
        sample = Sample(user_input=query, response=response, retrieved_contexts=contexts)
        assert isinstance(await metric.ascore(sample), Score)


def instant(n: int, repeats: int) -> dict[str, dict[str, float]]:
    """Return the CPU ms per sample of each way to score, by evaluator and way."""
    loop = asyncio.new_event_loop()
    core, adapted = own(FakeLLM(lambda request: SCRIPT[request.task])), own(Judge())
    ways: dict[tuple[str, str], Callable[[list[tuple[str, str, list[str]]]], Coroutine[Any, Any, None]]] = {}
    for name in core:
        ways[name, "alone"] = partial(alone, core[name].metric)
        ways[name, "runner"] = partial(batch, core[name])
        ways[name, "model"] = partial(alone, adapted[name].metric)
        ways[name, "both"] = partial(batch, adapted[name])
    for name, evaluator in theirs(Judge()).items():
        ways[name, "both"] = partial(batch, evaluator)
    figures: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
    for repeat in range(repeats + 1):
        for way, score in ways.items():
            given = texts(n, repeat * n)
            begun = time.process_time()
            loop.run_until_complete(score(given))
            figures[way].append((time.process_time() - begun) / n * 1000)
    loop.close()
    rows: dict[str, dict[str, float]] = {}
    for (name, way), measured in figures.items():
        rows.setdefault(name, {})[way] = statistics.median(measured[1:])  # the first was for warming up
    return rows


def slow(n: int, seconds: float, workers: int) -> list[tuple[str, float]]:
    """Return (evaluator, samples per second) with a judge that takes its time."""
    rows: list[tuple[str, float]] = []
    for name, evaluator in (own(Judge(seconds)) | theirs(Judge(seconds))).items():
        begun = time.perf_counter()
        asyncio.run(batch(evaluator, texts(n, 0), workers))
        rows.append((name, n / (time.perf_counter() - begun)))
    return rows


def import_seconds(statement: str, repeats: int) -> float:
    """Return the least CPU seconds of a new process that runs a statement."""
    command = [sys.executable, "-c", f"{statement}\nimport time; print(time.process_time())"]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(repeats))
    return min(float(done.stdout) for done in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=100, help="samples per repeat, instant judge")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--slow-n", type=int, default=40, help="samples with the slow judge")
    parser.add_argument("--seconds", type=float, default=0.05, help="how long the slow judge takes")
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, llama-index-core {version('llama-index-core')}\n")

    print(
        "| instant judge, CPU ms per sample | metric alone | BatchEvalRunner adds | LlamaIndex's model adds | in all |"
    )
    print("|---|---|---|---|---|")
    for name, row in instant(args.n, args.repeats).items():
        if "alone" in row:
            added, model = row["runner"] - row["alone"], row["model"] - row["alone"]
            print(f"| ragstone {name} | {row['alone']:.3f} | {added:.3f} | {model:.3f} | {row['both']:.3f} |")
        else:
            print(f"| {name} | | | | {row['both']:.3f} |")

    counts = (2, 16)
    head = " | ".join(f"workers={workers}" for workers in counts)
    print(f"\n| judge of {args.seconds * 1000:.0f} ms, samples/s | {head} |\n|---|{'---|' * len(counts)}")
    rates = [dict(slow(args.slow_n, args.seconds, workers)) for workers in counts]
    for name in rates[0]:
        print(f"| {name} | " + " | ".join(f"{rate[name]:.0f}" for rate in rates) + " |")

    print("\n| CPU seconds | |\n|---|---|")
    for statement in (
        "import ragstone",
        "import ragstone_llama_index",
        "import llama_index.core",
        "from ragstone_llama_index import *",
    ):
        print(f"| `{statement}` | {import_seconds(statement, 5):.2f} |")


if __name__ == "__main__":
    main()
