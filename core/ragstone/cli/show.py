"""Outcomes as text for people."""

from collections.abc import Iterator, Mapping

from ragstone.batch import Summary
from ragstone.outcome import Evidence, Outcome, Unscored

_WIDTH = 100
_AFFIRMATIVE = {  # whose probability `Verdict.probability` is, where the verdict is another word
    "cannot_tell": "yes",
    "contradicted": "supported",
    "irrelevant": "relevant",
    "no": "yes",
    "noncommittal": "committal",
    "not_in_source": "supported",
}
_LONGEST = 500
_JOINERS = "\u200c\u200d"  # invisible, but Persian, Indic scripts and emoji are wrong without them


def evidence_lines(sample_id: str, outcome: Outcome) -> Iterator[str]:
    """Yield an outcome as lines: the number, why, and each verdict with the passages that it points to."""
    head = f"{_short(sample_id)}  {outcome.metric}"
    if isinstance(outcome, Unscored):
        yield f"{head}  unscored ({outcome.reason}): {printable(outcome.detail)}"
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


def _place(evidence: Evidence) -> str:
    chunk = "" if evidence.chunk is None else f"[{evidence.chunk}]"
    return f"{evidence.field}{chunk} {evidence.start}-{evidence.end}"


def _short(text: str) -> str:
    return printable(text, _WIDTH)


def printable(text: str, width: int = _LONGEST) -> str:
    r"""Return the text on one line, cut to a width, with nothing in it that a terminal would obey.

    Example:
        >>> printable("a\n\x1b[31mb")
        'a \ufffd[31mb'
    """
    flat = " ".join(text[: 4 * width].split())
    shown = flat if len(flat) <= width and len(text) <= 4 * width else f"{flat[: width - 1]}…"
    return "".join(c if c.isprintable() or c in _JOINERS else "\ufffd" for c in shown)


def summary_table(summaries: Mapping[str, Summary]) -> str:
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
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    for name, s in summaries.items():
        for reason, count in sorted(s.failures.items()):
            lines += [f"unscored by {name}: {count} {reason}", f"    first: {printable(s.examples[reason])}"]
    return "\n".join(["", *lines])


def _count(tokens: int | None) -> str:
    return "not told" if tokens is None else f"{tokens:,}"
