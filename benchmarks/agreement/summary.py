"""All runs in one table: the score, hard verdicts beside probabilities, the best floor."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .files import OURS, replace_file
from .rows import DataError

_BEGIN, _END = "<!-- summary: by `python benchmarks/agreement summary` -->", "<!-- end of summary -->"
_SHOWN = ("sentence F1", "sentence F1, answerable rows", "AUROC of sentences", "accuracy", "AUROC", "pairwise accuracy",
          "rho of the share", "rho within documents")  # fmt: skip
_PART = {("summarization_score", "coverage"): "qa", ("summarization_score", "overall"): "qa",
         ("alignment_coverage", "coverage"): "coverage", ("alignment_coverage", "alignment"): "alignment",
         ("alignment_coverage", "human"): "alignment"}  # fmt: skip
_HEAD = ["set", "metric", "against", "statistic", "n", "score", "hard verdicts", "probabilities",
         "probabilities - hard", "best floor", "score - floor"]  # fmt: skip

Key = tuple[str, str, str, str, str]
"""File, metric, label, statistic, reading."""
Entry = Mapping[str, Any]


def write_summary(results: Path) -> Path:
    """Write the table of all runs in a folder into its README, between two marks; return where it is.

    Raises:
        DataError: There is no run, or no README with the marks.
    """
    now = _entries(results.glob("*/table.json"))
    if not now:
        raise DataError(f"{results}: holds no folder with a table.json")
    readme = results / "README.md"
    head, begin, rest = readme.read_text(encoding="utf-8").partition(_BEGIN) if readme.exists() else ("", "", "")
    _, end, tail = rest.partition(_END)
    if not (begin and end):
        raise DataError(f"{readme}: has no lines {_BEGIN} and {_END}")
    rows: list[list[str]] = []
    gains: dict[str, list[Mapping[str, float]]] = {}
    for (file, metric, label, statistic, reading), entry in now.items():
        if statistic not in _SHOWN or reading not in ("value", "sentences", "probabilities", "noncommittal"):
            continue
        part = _PART.get((metric, label))
        hard = now.get((file, metric, label, statistic, part or "count"))
        graded = now.get((file, metric, label, statistic, f"{part}_expected" if part else "expected"))
        gain = _ours(graded).get("minus_count")
        if gain and gain["low"] is not None:
            gains.setdefault(file, []).append(gain)
        best = entry["floors"][entry["best"]] if entry["best"] else None
        rows.append(
            [file.rpartition("__")[2], metric, label, statistic, str((_ours(entry)["estimate"] or {}).get("units", 0)),
             *(_shown(_ours(each).get("estimate")) for each in (entry, hard, graded)), _shown(gain, "+"),
             f"{entry['best']} {_shown(best)}", _shown(_ours(entry)["minus_floor"], "+")]
        )  # fmt: skip
    lines = [_line(_HEAD), _line(["---"] * len(_HEAD)), *map(_line, rows), "", *_in_sum(gains)]
    replace_file(readme, ["\n".join([head + begin, "", *lines, end + tail.rstrip("\n")])])
    return readme


def _entries(paths: Iterator[Path]) -> dict[Key, Entry]:
    """Return the rows of tables that ragstone has a figure in."""
    content = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(paths)]
    names = ("file", "metric", "label", "statistic", "reading")
    return {tuple(each[name] for name in names): each for one in content for each in one["table"] if _ours(each)}  # type: ignore[misc]


def _ours(entry: Entry | None) -> Mapping[str, Any]:
    systems: Sequence[Mapping[str, Any]] = entry["systems"] if entry else ()
    return next((each for each in systems if each["system"] == OURS), {})


def _in_sum(gains: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[str]:
    """Say what probabilities gain over hard verdicts in the mean of the sets, each the mean of its lines.

    Sets are independent; the lines of one are taken to err together, so that its interval is as wide as theirs.
    """
    if gains:
        means = [math.fsum(gain["value"] for gain in each) / len(each) for each in gains.values()]
        widths = [math.fsum(gain["high"] - gain["low"] for gain in each) / len(each) for each in gains.values()]
        mean, half = math.fsum(means) / len(means), math.hypot(*widths) / 2 / len(means)
        figure = _shown({"value": mean, "low": mean - half, "high": mean + half}, "+")
        ahead = sum(each > 0 for each in means)
        yield f"Probabilities minus hard verdicts, mean of the {len(means)} sets: {figure}; ahead in {ahead}."


def _shown(estimate: Mapping[str, Any] | None, sign: str = "") -> str:
    if not estimate:
        return ""
    value, low, high = (estimate[name] for name in ("value", "low", "high"))
    return f"{value:{sign}.2f}" + ("" if low is None else f" [{low:{sign}.2f}, {high:{sign}.2f}]")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
