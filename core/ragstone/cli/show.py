"""Outcomes as text for people."""

from collections.abc import Iterator, Mapping

from ragstone.outcome import Evidence, Outcome, Suspicion, Unscored
from ragstone.reporting import MetricSummary
from ragstone.text.plain import printable, text_table

_WIDTH = 100
_AFFIRMATIVE = {  # whose probability `Verdict.probability` is, where the verdict is another word
    "cannot_tell": "yes",
    "contradicted": "supported",
    "irrelevant": "relevant",
    "no": "yes",
    "noncommittal": "committal",
    "not_in_source": "supported",
}


def evidence_lines(sample_id: str, outcome: Outcome) -> Iterator[str]:
    """Yield an outcome as lines: the number, why, and each verdict with the passages that it points to."""
    head = f"{_short(sample_id)}  {outcome.metric}"
    if isinstance(outcome, Unscored):
        yield f"{head}  unscored ({outcome.reason}): {printable(outcome.detail)}"
        yield from _suspected_lines(outcome)
        return
    passed = {True: "  passed", False: "  below its threshold", None: ""}[outcome.passed]
    yield f"{head}  {outcome.value:.3f}{passed}"
    yield f"    {printable(outcome.reason)}"
    parts = "  ".join(f"{name} {value:.3f}" for name, value in outcome.breakdown.items())
    if parts:
        yield f"    {parts}"
    for verdict in outcome.verdicts:
        word = _AFFIRMATIVE.get(verdict.verdict, verdict.verdict)
        sure = "" if verdict.probability is None else f" p({word})={verdict.probability:.2f}"
        yield f"    {verdict.kind} {verdict.id}: {verdict.verdict}{sure}: {_short(verdict.text)}"
        for evidence in verdict.evidence:
            text = "" if evidence.text == verdict.text else f" {_short(evidence.text)}"
            yield f"        [{_place(evidence)}]{text}"
    yield from _suspected_lines(outcome)


def _suspected_lines(outcome: Outcome) -> Iterator[str]:
    for sign in outcome.suspected:
        yield f"    looks like an attack on the judge ({sign.kind.replace('_', ' ')}): [{_place(sign)}]"


def _place(passage: Evidence | Suspicion) -> str:
    chunk = "" if passage.chunk is None else f"[{passage.chunk}]"
    return f"{passage.field}{chunk} {passage.start}-{passage.end}"


def _short(text: str) -> str:
    return printable(text, _WIDTH)


def summary_table(summaries: Mapping[str, MetricSummary]) -> str:
    """Return the totals of each metric as a table, with the failures by reason and one of each below it."""
    head = ("metric", "mean", "scored", "judge calls", "tokens in", "tokens out")
    rows = [
        (
            name,
            "-" if s.mean is None else f"{s.mean:.3f}",
            f"{s.scored}/{s.total}",
            f"{s.usage.llm_calls:,}",
            _count(s.usage.input_tokens),
            _count(s.usage.output_tokens),
        )
        for name, s in summaries.items()
    ]
    lines = text_table(head, rows)
    for name, s in summaries.items():
        for reason, count in sorted(s.failures.items()):
            lines += [f"unscored by {name}: {count} {reason}", f"    first: {printable(s.examples[reason])}"]
    return "\n".join(["", *lines])


def _count(tokens: int | None) -> str:
    return "not told" if tokens is None else f"{tokens:,}"
