"""Which metrics fit rows, where none is named."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import get_args

from ragstone.registry import GROUPS, NullJudge, RegistryError, make_metric, metric_names
from ragstone.sample import BadLine, Row, Sample, SampleField

_LOOKED_AT = 100  # rows at most
Item = Row | BadLine


def choose(rows: Iterator[Item]) -> tuple[str, str, Iterator[Item]]:
    """Return the group of metrics that fits the rows, a line that says so, and all the rows.

    The first of the first 100 rows that has contexts and a response decides, and none after it is read. Where no row
    holds a sample, the group is "rag" and the line empty.

    Raises:
        RegistryError: None of them has both; the message says for which metrics the first sample would do.

    Example:
        >>> choose(iter([Row(1, Sample(retrieved_contexts=["Emma is a novel."], response="A novel."))]))[1]
        'Metrics: summary (summarization_score, alignment_coverage), because row 1 has retrieved_contexts and response.'
    """
    seen: list[Item] = []
    for item in islice(rows, _LOOKED_AT):
        seen.append(item)
        if isinstance(item, Row) and _decides(item):
            has = _fields(item.sample)
            group = "rag" if "user_input" in has else "summary"
            line = f"Metrics: {group} ({', '.join(GROUPS[group])}), because row {item.line} has {_and(has)}."
            line += " The group golden compares with the reference." if "reference" in has else ""
            return group, line, chain(seen, rows)
    first = next((item for item in seen if isinstance(item, Row)), None)
    if first is None:
        return "rag", "", chain(seen, rows)
    has = _fields(first.sample)
    metrics = [make_metric(name, {}, NullJudge(), NullJudge()) for name in metric_names()]
    enough = ", ".join(metric.name for metric in metrics if set(metric.required_fields) <= set(has))
    raise RegistryError(
        f"none is named, and none of the first {len(seen)} row(s) has retrieved_contexts and response; "
        f"row {first.line} has {_and(has) or 'no text'}, which is enough for {enough or 'no metric of ragstone'}"
    )


def _decides(item: Item) -> bool:
    return isinstance(item, Row) and bool(item.sample.retrieved_contexts and item.sample.response)


def _fields(sample: Sample) -> list[str]:
    return [name for name in get_args(SampleField) if getattr(sample, name)]


def _and(words: Sequence[str]) -> str:
    return " and ".join(", ".join(part) for part in (words[:-1], words[-1:]) if part)
