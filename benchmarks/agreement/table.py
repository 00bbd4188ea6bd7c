"""One table from labels and scores: statistics side by side, what they cost, what was not scored."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .files import OURS, Key, Label, Line, read_records, read_runs, replace_file
from .judge_free import cosine_maps, others
from .markdown import document
from .measures import Estimate, Measure, difference, estimate
from .readings import Comparison, comparisons
from .rows import DataError

Pair = tuple[Label, Line]

_DIGITS = 6  # what machines agree on


@dataclass(frozen=True, kw_only=True)
class SystemFigure:
    """What one system comes to by one statistic, on `rows` rows.

    Attributes:
        shared: On how many rows it and ragstone both have the number; None for ragstone.
        ours_minus: ragstone's statistic minus its, on these, with the interval of the difference.
        minus_floor: Of scores by ragstone, under any name: the statistic minus that of the best floor, on its rows.
        minus_count: Of ragstone's readings by probabilities: the statistic minus that by hard verdicts, on its rows.
    """

    system: str
    rows: int
    estimate: Estimate | None
    shared: int | None = None
    ours_minus: Estimate | None = None
    minus_floor: Estimate | None = None
    minus_count: Estimate | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of the table.

    Attributes:
        of: The rows that have a label.
        floors: What trivial scorers come to, on the rows of the first system.
        best: The best of them, chosen once, on all of these rows.
        systems: What each system comes to; ragstone first.
    """

    file: str
    metric: str
    reading: str
    label: str
    statistic: str
    of: int
    floors: Mapping[str, Estimate | None]
    best: str | None
    systems: tuple[SystemFigure, ...]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a system spent on a file with a metric; None where it was not counted for every row.

    Attributes:
        version: Of the metric.
    """

    file: str
    metric: str
    system: str
    version: str
    rows: int
    scored: int
    unscored: Mapping[str, int]
    calls: float | None
    input_tokens: float | None
    output_tokens: float | None
    seconds: float | None


def write_table(out: Path) -> tuple[Path, Path]:
    """Write `table.md` and `table.json` from the labels and scores in a folder; return where they are.

    Raises:
        DataError: There are none, or they are of another form.
    """
    labels = {(label.file, label.id): label for label in read_records(out / "rows.jsonl", Label)}
    names = sorted((path.stem for path in (out / "scores").glob("*.jsonl")), key=lambda name: (name != OURS, name))
    if not names:
        raise DataError(f"{out}: holds no scores; run the benchmark first")
    scores = {name: read_records(out / "scores" / f"{name}.jsonl", Line) for name in names}
    entries, costs = list(_entries(labels, scores)), list(_costs(labels, scores))
    runs = read_runs(out / "run.json")
    content = {
        "systems": {name: info.model_dump() for name, info in runs.items()},
        "table": [asdict(entry) for entry in entries],
        "cost": [asdict(cost) for cost in costs],
    }
    markdown, data = out / "table.md", out / "table.json"
    plain = json.loads(json.dumps(content, allow_nan=False), parse_float=lambda number: round(float(number), _DIGITS))
    replace_file(data, [json.dumps(plain, indent=1)])
    replace_file(markdown, [document(runs, entries, costs)])
    return markdown, data


def _entries(labels: Mapping[tuple[str, str], Label], scores: Mapping[str, list[Line]]) -> Iterator[Entry]:
    by_system = {name: _by_row(lines) for name, lines in scores.items()}
    maps = cosine_maps(labels.values()) if any(label.task == "sentences" for label in labels.values()) else {}
    for file, metric in _kinds(labels):
        of_file = [label for label in labels.values() if label.file == file]
        targets = dict.fromkeys(name for label in of_file for name in label.target)
        for comparison in comparisons(of_file[0].task, metric, targets, others(maps, file)):
            # Not every row has every label. ("relevant" is no target: it is on each row of its task.)
            having_label = [
                label for label in of_file if comparison.label in label.target or comparison.label not in targets
            ]
            labelled = [label for label in having_label if label.relevant or not comparison.answerable]
            if comparison.answerable and len(labelled) == len(having_label):
                continue  # the same again
            having: dict[str, list[Pair]] = {}
            for name, lines in by_system.items():
                for label in labelled:
                    line = lines.get((label.file, label.id, metric))
                    if line is not None and line.value is not None and comparison.take(line) is not None:
                        having.setdefault(name, []).append((label, line))
            if having:
                yield _entry(file, metric, len(labelled), comparison, having)


def _entry(file: str, metric: str, of: int, comparison: Comparison, having: Mapping[str, Sequence[Pair]]) -> Entry:
    floors = {
        name: estimate(measure)
        for name in comparison.floors
        if (measure := _of_floor(comparison, name, next(iter(having.values())))) is not None
    }
    lower = -1 if comparison.name.startswith("mean error") else 1
    known = {name: lower * floor.value for name, floor in floors.items() if floor is not None}
    best = max(known, key=known.__getitem__) if known else None
    return Entry(
        file=file,
        metric=metric,
        reading=comparison.reading,
        label=comparison.label,
        statistic=comparison.name,
        of=of,
        floors=floors,
        best=best,
        systems=tuple(_figure(name, comparison, pairs, having.get(OURS), best) for name, pairs in having.items()),
    )


def _measure(comparison: Comparison, pairs: Sequence[Pair]) -> Measure:
    return comparison.statistic([comparison.take(line) for _, line in pairs], [label for label, _ in pairs])


def _of_floor(comparison: Comparison, name: str, pairs: Sequence[Pair]) -> Measure | None:
    """Return what a trivial scorer comes to on these rows; None where it knows nothing of one of them."""
    labels = [label for label, _ in pairs]
    values = comparison.floors[name](labels)
    return None if any(value is None for value in values) else comparison.statistic(values, labels)


def _figure(
    system: str, comparison: Comparison, pairs: Sequence[Pair], ours: Sequence[Pair] | None, best: str | None
) -> SystemFigure:
    measure = _measure(comparison, pairs)
    floor = _of_floor(comparison, best, pairs) if best is not None and system.startswith(OURS) else None
    hard = [comparison.count(line) for _, line in pairs] if comparison.count and system.startswith(OURS) else [None]
    count = None if None in hard else comparison.statistic(hard, [label for label, _ in pairs])
    figure = SystemFigure(
        system=system,
        rows=len(pairs),
        estimate=estimate(measure),
        minus_floor=None if floor is None else difference(measure, floor),
        minus_count=None if count is None else difference(measure, count),
    )
    if system == OURS or ours is None:
        return figure
    both = {label.id for label, _ in pairs} & {label.id for label, _ in ours}
    ours, theirs = ([pair for pair in each if pair[0].id in both] for each in (ours, pairs))
    ours_minus = difference(_measure(comparison, ours), _measure(comparison, theirs))
    return replace(figure, shared=len(both), ours_minus=ours_minus)


def _costs(labels: Mapping[tuple[str, str], Label], scores: Mapping[str, list[Line]]) -> Iterator[Cost]:
    for file, metric in _kinds(labels):
        for system, lines in scores.items():
            own = [line for line in lines if line.metric == metric and line.file == file and line.key[:2] in labels]
            rows = list(_by_row(own).values())
            if rows:
                yield Cost(
                    file=file,
                    metric=metric,
                    system=system,
                    version=", ".join(sorted({line.version for line in own} - {""})),
                    rows=len(rows),
                    scored=sum(row.value is not None for row in rows),
                    unscored=dict(Counter(row.unscored for row in rows if row.unscored is not None)),
                    calls=_sum(row.calls for row in rows),
                    input_tokens=_sum(row.input_tokens for row in rows),
                    output_tokens=_sum(row.output_tokens for row in rows),
                    seconds=_sum(row.seconds for row in rows),
                )


def _kinds(labels: Mapping[tuple[str, str], Label]) -> list[tuple[str, str]]:
    """Return each file with each of its metrics."""
    return sorted({(label.file, metric) for label in labels.values() for metric in label.metrics})


def _by_row(lines: Iterable[Line]) -> dict[Key, Line]:
    return {line.key: line for line in lines}


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
