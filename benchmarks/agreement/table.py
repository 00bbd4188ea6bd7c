"""One table from labels and scores: statistics side by side, what they cost, what was not scored."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .comparison import Comparison, Pair
from .facts import OURS, read_facts
from .labels import Label, read_labels, replace_file
from .lines import Key, Line, draw_sd, read_lines, together
from .markdown import document
from .readings import comparisons
from .rows import DataError
from .statistics import Estimate, difference, estimate


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one system comes to by one statistic.

    Attributes:
        system: Its name.
        rows: On how many rows.
        estimate: The statistic; None where it is undefined on these rows.
        shared: On how many rows it and ragstone both have the number; None for ragstone.
        ours_minus: ragstone's statistic minus its, on these, with the interval of the difference.
    """

    system: str
    rows: int
    estimate: Estimate | None
    shared: int | None = None
    ours_minus: Estimate | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of the table.

    Attributes:
        file: The rows' file.
        metric: The metric.
        reading: Which number of its outcome.
        label: What it is held against.
        statistic: By which statistic.
        of: The rows that have a label.
        floors: What trivial scorers come to, on the rows of the first system.
        systems: What each system comes to; ragstone first.
    """

    file: str
    metric: str
    reading: str
    label: str
    statistic: str
    of: int
    floors: Mapping[str, float | None]
    systems: tuple[Found, ...]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a system spent on a file with a metric, draws together.

    Attributes:
        file: The rows' file.
        metric: The metric.
        system: The system.
        version: The metric's version.
        rows: Rows asked.
        scored: Those that have a score.
        unscored: How many have none, by reason.
        calls: To the judge; None where it was not counted for every row, likewise what follows.
        input_tokens: Of the prompts.
        output_tokens: Of the replies.
        seconds: Wall time, the rows' together.
        draw_sd: Standard deviation between draws of a row; None where there is one draw.
    """

    file: str
    metric: str
    system: str
    version: str
    rows: int
    scored: int
    unscored: Mapping[str, int]
    calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    seconds: float | None
    draw_sd: float | None


def write_table(out: Path) -> tuple[Path, Path]:
    """Write `table.md` and `table.json` from the labels and scores in a folder; return where they are.

    Raises:
        DataError: There are none, or they are of another form.
    """
    labels = {(label.file, label.id): label for label in read_labels(out / "rows.jsonl")}
    scores = {path.stem: read_lines(path) for path in sorted((out / "scores").glob("*.jsonl"))}
    if not scores:
        raise DataError(f"{out}: holds no scores; run the benchmark first")
    ordered = {name: scores[name] for name in sorted(scores, key=lambda name: (name != OURS, name))}
    entries, costs = list(_entries(labels, ordered)), list(_costs(labels, ordered))
    facts = read_facts(out / "run.json")
    described = {name: asdict(each) for name, each in facts.items()}
    content = {"systems": described, "table": [asdict(e) for e in entries], "cost": [asdict(c) for c in costs]}
    markdown, data = out / "table.md", out / "table.json"
    replace_file(data, [json.dumps(content, indent=1, allow_nan=False)])
    replace_file(markdown, [document(facts, entries, costs)])
    return markdown, data


def _entries(labels: Mapping[tuple[str, str], Label], scores: Mapping[str, list[Line]]) -> Iterator[Entry]:
    by_system = {name: _by_row(lines) for name, lines in scores.items()}
    for file, metric in _kinds(labels):
        of_file = [label for label in labels.values() if label.file == file]
        given = {
            name: [
                (label, lines[label.file, label.id, metric])
                for label in of_file
                if (label.file, label.id, metric) in lines
            ]
            for name, lines in by_system.items()
        }
        targets = dict.fromkeys(name for label in of_file for name in label.target)
        for comparison in comparisons(of_file[0].task, metric, tuple(targets)):
            # Not every row has every label. ("relevant" is no target: it is on each row of its task.)
            labelled = {
                each.id for each in of_file if comparison.label in each.target or comparison.label not in targets
            }
            having = {
                name: [
                    (label, line)
                    for label, line in pairs
                    if label.id in labelled and line.value is not None and comparison.has(line)
                ]
                for name, pairs in given.items()
            }
            having = {name: pairs for name, pairs in having.items() if pairs}
            if having:
                yield _entry(file, metric, len(labelled), comparison, having)


def _entry(file: str, metric: str, of: int, comparison: Comparison, having: Mapping[str, Sequence[Pair]]) -> Entry:
    first = next(iter(having.values()))
    floors = {name: estimate(measure(first)) for name, measure in comparison.floors.items()}
    return Entry(
        file=file,
        metric=metric,
        reading=comparison.reading,
        label=comparison.label,
        statistic=comparison.statistic,
        of=of,
        floors={name: None if found is None else found.value for name, found in floors.items()},
        systems=tuple(_found(name, comparison, pairs, having.get(OURS)) for name, pairs in having.items()),
    )


def _found(system: str, comparison: Comparison, pairs: Sequence[Pair], ours: Sequence[Pair] | None) -> Found:
    own = estimate(comparison.measure(pairs))
    if system == OURS or ours is None:
        return Found(system=system, rows=len(pairs), estimate=own)
    here, there = {label.id for label, _ in pairs}, {label.id for label, _ in ours}
    ours_shared = [pair for pair in ours if pair[0].id in here]
    theirs_shared = [pair for pair in pairs if pair[0].id in there]
    return Found(
        system=system,
        rows=len(pairs),
        estimate=own,
        shared=len(ours_shared),
        ours_minus=difference(comparison.measure(ours_shared), comparison.measure(theirs_shared)),
    )


def _costs(labels: Mapping[tuple[str, str], Label], scores: Mapping[str, list[Line]]) -> Iterator[Cost]:
    for file, metric in _kinds(labels):
        for system, lines in scores.items():
            own = [line for line in lines if line.metric == metric and line.file == file and line.key[:2] in labels]
            if own:
                yield _cost(file, metric, system, own)


def _cost(file: str, metric: str, system: str, lines: list[Line]) -> Cost:
    rows = list(_by_row(lines).values())
    return Cost(
        file=file,
        metric=metric,
        system=system,
        version=", ".join(sorted({line.version for line in lines} - {""})),
        rows=len(rows),
        scored=sum(row.value is not None for row in rows),
        unscored=dict(Counter(row.unscored for row in rows if row.unscored is not None)),
        calls=_sum([row.calls for row in rows]),
        input_tokens=_sum([row.input_tokens for row in rows]),
        output_tokens=_sum([row.output_tokens for row in rows]),
        seconds=None if any(row.seconds is None for row in rows) else sum(row.seconds or 0.0 for row in rows),
        draw_sd=draw_sd(lines),
    )


def _kinds(labels: Mapping[tuple[str, str], Label]) -> list[tuple[str, str]]:
    """Return each file with each of its metrics."""
    return sorted({(label.file, metric) for label in labels.values() for metric in label.metrics})


def _by_row(lines: Sequence[Line]) -> dict[Key, Line]:
    draws: dict[Key, list[Line]] = {}
    for line in lines:
        draws.setdefault(line.key, []).append(line)
    return {key: together(each) for key, each in draws.items()}


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
