"""Realistic results: the real metrics over a few samples, with a judge whose words are drawn by chance."""

import itertools
import random
from pathlib import Path

from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMRequest,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.errors import score_safely
from ragstone.sinks import Health, Record, SQLiteSink
from ragstone.store.record import without_texts
from ragstone.testing import FakeEmbedder, FakeLLM

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200  # a day in September 2026

CONTEXTS = (
    "Emma is a novel by Jane Austen, first published in December 1815. It was dedicated to the Prince Regent. Austen "
    "wrote it while she lived at Chawton. The weather there was mild.",
    "The heroine is Emma Woodhouse, handsome, clever and rich. She likes to make matches for others. Her father is "
    "much concerned with draughts, gruel and the health of his guests.",
)
QUESTIONS = (
    "Who wrote Emma?",
    "When was Emma first published?",
    "To whom was the novel dedicated?",
    "What does Emma Woodhouse like to do?",
)
RESPONSES = (
    "Emma was written by Jane Austen. It came out in 1815.",
    "It was first published in 1816 in Boston.",
    "I am sorry, I do not know.",
    "Emma Woodhouse, who is rich, likes to make matches.",
)


def sample(i: int) -> Sample:
    at = i % len(QUESTIONS)
    return Sample(user_input=QUESTIONS[at], retrieved_contexts=CONTEXTS, response=RESPONSES[at], id=f"run-{i:05d}")


class Chance:
    """Answers any request as its schema allows, yes more often than no."""

    def __init__(self, seed: int, good: float = 0.75) -> None:
        self._random = random.Random(seed)
        self.good = good

    def __call__(self, request: LLMRequest):
        if self._random.random() < 0.03:
            return self._random.choice((ConnectionError("refused"), TimeoutError("no reply within 30 s")))
        return self._fill(request.schema)

    def _fill(self, schema):
        draw = self._random
        if "enum" in schema:
            return schema["enum"][0] if draw.random() < self.good else draw.choice(schema["enum"])
        if schema["type"] == "object":
            return {key: self._fill(value) for key, value in schema["properties"].items()}
        if schema["type"] == "boolean":
            return draw.random() > self.good + 0.15
        if schema["type"] == "array" and schema["items"].get("type") == "integer":
            ids = range(schema["items"]["minimum"], schema["items"]["maximum"] + 1)
            return [i for i in ids if draw.random() < self.good]
        if schema["type"] == "array":
            n = max(schema["minItems"], min(schema.get("maxItems", 4), 4))
            return [self._fill(schema["items"]) for _ in range(n)]
        facts = ("It came out in 1815.", "Jane Austen wrote Emma.", "It is dedicated to a prince.", "Emma is rich.")
        return f"{draw.choice(facts)} ({draw.randrange(99)})"


def metrics(judge: Chance):
    llm = FakeLLM(judge, model="gpt-test-mini")
    return [
        SummarizationScore(llm=llm),
        AlignmentCoverage(llm=llm, source="retrieved_contexts"),
        ResponseRelevancy(llm=llm, embedder=FakeEmbedder(dim=3)),
        ContextRelevancy(llm=llm),
    ]


def records(n: int, *, days: float = 3.0, texts: bool = True, seed: int = 7):
    """Yield n samples' outcomes by all metrics, evenly over the days before NOON."""
    draw = random.Random(seed)
    judge = Chance(seed)
    four = metrics(judge)
    for i in range(n):
        at = NOON - days * 86_400 * (1 - i / n)
        judge.good = 0.75 + 0.15 * (i / n > 0.5) - 0.3 * (0.6 < i / n < 0.65)
        rule = draw.random() < 0.1
        one = sample(i) if draw.random() > 0.02 else Sample(user_input=QUESTIONS[0], id=f"run-{i:05d}")
        for metric in four:
            outcome = score_safely(metric, one)
            tokens = None if draw.random() < 0.01 else 700 + draw.randrange(300)
            usage = outcome.usage.model_copy(update={"input_tokens": tokens, "output_tokens": tokens and tokens // 9})
            outcome = outcome.model_copy(update={"usage": usage})
            yield Record(
                sample_id=one.id or "",
                outcome=outcome if texts else without_texts(outcome),
                judge="gpt-test-mini",
                submitted_at=at,
                scored_at=at + 3,
                rate=1.0 if rule else 0.25,
                chosen_by="error" if rule else "rate",
                sample=one if texts else None,
            )


def health(process: str = "web-1:4242", **counts: int) -> Health:
    given = {"scored": 900, "unscored": 60, "not_sampled": 2_000, "dropped": 37, "pending": 3, **counts}
    return Health(
        process=process,
        at=NOON,
        started_at=NOON - 3 * 86_400,
        counts={"accepted": sum(given.values()), **given},
        reasons={"dropped": {"queue_full": given["dropped"]}} if given["dropped"] else {},
        longest_queue=812,
    )


def database(path: Path, given, *processes: Health) -> Path:
    """Write records and counters as a monitor does."""
    sink = SQLiteSink(path)
    given = iter(given)
    while batch := list(itertools.islice(given, 500)):
        sink.write(batch)
    for each in processes:
        sink.health(each)
    sink.close()
    return path
