"""The rows without their texts: labels and cheap numbers, kept beside the scores so that the table needs no data."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from .fields import Place
from .floors import Signals, signals
from .rows import DataError, Row, Task


@dataclass(frozen=True, kw_only=True)
class Label:
    """What of a row is needed to hold scores against it: ids and numbers, no text.

    Attributes:
        file: As in `Row`; likewise `id`, `task`, `metrics`, `group`, `target`, `relevant`.
        signals: What trivial scorers need.
    """

    file: str
    id: str
    task: Task
    metrics: tuple[str, ...]
    group: str | None
    target: Mapping[str, float]
    relevant: frozenset[Place]
    signals: Signals

    @classmethod
    def of(cls, row: Row) -> "Label":
        """Return the label of a row."""
        return cls(
            file=row.file,
            id=row.id,
            task=row.task,
            metrics=row.metrics,
            group=row.group,
            target=row.target,
            relevant=row.relevant,
            signals=signals(row),
        )

    def places(self) -> Iterator[Place]:
        """Yield the places of all sentences."""
        for passage, sentences in enumerate(self.signals.overlaps):
            for number in range(len(sentences)):
                yield passage, number


def keep_labels(path: Path, labels: Iterable[Label]) -> None:
    """Write labels, in place of those that are there for the same files."""
    new = list(labels)
    files = {label.file for label in new}
    kept = [label for label in read_labels(path) if label.file not in files] if path.exists() else []
    replace_file(path, (_as_json(label) for label in sorted([*kept, *new], key=lambda label: label.file)))


def read_labels(path: Path) -> list[Label]:
    """Return the labels that `keep_labels` wrote.

    Raises:
        DataError: The file is none of these.
    """
    try:
        return [_from_json(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: holds no labels ({error}); run the benchmark on the data again") from None


def replace_file(path: Path, lines: Iterable[str]) -> None:
    """Write a file in one step, so that a killed run leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    new.replace(path)


def _as_json(label: Label) -> str:
    fields = asdict(label)
    fields["relevant"] = sorted(label.relevant)
    fields["signals"] = label.signals._asdict()
    return json.dumps(fields, separators=(",", ":"))


def _from_json(given: dict[str, Any]) -> Label:
    values = cast("dict[str, Any]", given["signals"])
    values["overlaps"] = tuple(tuple(each) for each in values["overlaps"])
    return Label(
        file=given["file"],
        id=given["id"],
        task=given["task"],
        metrics=tuple(given["metrics"]),
        group=given["group"],
        target=given["target"],
        relevant=frozenset((passage, number) for passage, number in given["relevant"]),
        signals=Signals(**values),
    )
