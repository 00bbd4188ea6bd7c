"""What a monitor keeps: records with texts and verdicts drawn by chance, and counters."""

import random
from pathlib import Path

from ragstone import Evidence, Sample, Score, Unscored, Usage, Verdict
from ragstone.live import Record, SQLiteSink

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200  # a day in September 2026
METRICS = ("alignment_coverage", "context_relevancy", "response_relevancy", "summarization_score")
CONTEXTS = (
    "Emma is a novel by Jane Austen, first published in December 1815. It was dedicated to the Prince Regent.",
    "The heroine is Emma Woodhouse, handsome, clever and rich. She likes to make matches for others.",
)
QUESTIONS = ("Who wrote Emma?", "When was Emma first published?", "To whom was the novel dedicated?")


def records(n):
    """Yield n samples' outcomes by four metrics, evenly over three days before NOON."""
    draw = random.Random(7)
    for i in range(n):
        at = NOON - 3 * 86_400 * (1 - i / n)
        rule = draw.random() < 0.1
        text = f"Jane Austen wrote it in {1800 + i}."
        sample = Sample(user_input=QUESTIONS[i % 3], retrieved_contexts=CONTEXTS, response=text, id=f"run-{i:05d}")
        for metric in METRICS:
            tokens = None if draw.random() < 0.01 else draw.randrange(700, 999)
            usage = Usage(llm_calls=2, input_tokens=tokens, output_tokens=tokens and tokens // 9)
            if draw.random() < 0.1:
                outcome = Unscored(metric=metric, reason="timeout", detail="no reply", version="1", usage=usage)
            else:
                passages = [Evidence(field="retrieved_contexts", chunk=1, start=0, end=11, text=CONTEXTS[1][:11])]
                verdicts = [
                    Verdict(id=str(k), kind="claim", text=text, verdict="no", evidence=passages, lowers_score=k > 1)
                    for k in (1, 2)
                ]
                outcome = Score(
                    metric=metric, value=round(draw.random(), 2), reason="1 of 2.", breakdown={"part": 0.5},
                    verdicts=verdicts, version="1", usage=usage,
                )  # fmt: skip
            yield Record(
                sample_id=sample.id, outcome=outcome, judge="gpt-test-mini", submitted_at=at, scored_at=at + 3,
                rate=1.0 if rule else 0.25, chosen_by="error" if rule else "rate", sample=sample,
            )  # fmt: skip


def database(path: Path, given) -> Path:
    """Write records as a monitor does."""
    sink = SQLiteSink(path)
    sink.write(list(given))
    sink.close()
    return path
