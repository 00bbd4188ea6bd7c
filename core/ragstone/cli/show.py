"""Outcomes as text for people."""

from collections.abc import Iterator, Mapping

from ragstone.batch import Summary
from ragstone.outcome import Evidence, Outcome, Unscored

_WIDTH = 100


def evidence_lines(sample_id: str, outcome: Outcome) -> Iterator[str]:
    """Yield an outcome as lines: the number, why, and each verdict with the passages that it points to."""
    if isinstance(outcome, Unscored):
        yield f"{sample_id}  {outcome.metric}  unscored ({outcome.reason}): {outcome.detail}"
        return
    passed = {True: "  passed", False: "  below its threshold", None: ""}[outcome.passed]
    yield f"{sample_id}  {outcome.metric}  {outcome.value:.3f}{passed}"
    yield f"    {outcome.reason}"
    parts = "  ".join(f"{name} {value:.3f}" for name, value in outcome.breakdown.items())
    if parts:
        yield f"    {parts}"
    for verdict in outcome.verdicts:
        sure = "" if verdict.probability is None else f" p={verdict.probability:.2f}"
        own = verdict.evidence[0] if verdict.kind == "sentence" and verdict.evidence else None
        where = f"  [{_place(own)}]" if own else ""
        yield f"    {verdict.kind} {verdict.id}: {verdict.verdict}{sure}: {_short(verdict.text)}{where}"
        for evidence in () if own else verdict.evidence:
            yield f"        [{_place(evidence)}] {_short(evidence.text)}"


def _place(evidence: Evidence) -> str:
    chunk = "" if evidence.chunk is None else f"[{evidence.chunk}]"
    return f"{evidence.field}{chunk} {evidence.start}-{evidence.end}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    shown = flat if len(flat) <= _WIDTH else f"{flat[: _WIDTH - 1]}…"
    return "".join(c if c.isprintable() else "\ufffd" for c in shown)  # no control sequence reaches the terminal


def summary_table(summaries: Mapping[str, Summary]) -> str:
    """Return the totals of each metric as a table, with the failures by reason below it."""
    head = ("metric", "mean", "scored", "judge calls", "input tokens", "output tokens")
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
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    for name, s in summaries.items():
        lines += [f"unscored by {name}: {count} {reason}" for reason, count in sorted(s.failures.items())]
    return "\n".join(["", *lines])


def _count(tokens: int | None) -> str:
    return "not told" if tokens is None else f"{tokens:,}"
