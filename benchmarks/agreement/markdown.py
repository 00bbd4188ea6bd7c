"""The table as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .files import OURS, RunInfo
from .measures import Estimate

if TYPE_CHECKING:
    from .table import Cost, Entry, SystemFigure

NOTES = """\
- In brackets: 95 % intervals, of shares by Wilson, else by bootstrap over pairs, rows or documents; n: those units, of
  the rows that have a score; beside a figure where it has more or fewer of them.
- "ours" is ragstone's figure minus that system's, on the rows that both scored, with the interval of the difference.
- Floors are trivial scorers on the same rows, the best first. It was chosen once, on all of the rows, which favours it;
  "minus the best floor" is ragstone's figure minus its, drawn together. "cosines, by X" is a map from cosines alone,
  without a judge, fitted on the rows of X. For an error, lower is better; for all else, higher.
- "in" and "out" are tokens, "seconds" the rows' wall time, added up. A dash: undefined, or not counted."""
COSTS = ["file", "metric", "system", "version", "scored", "unscored", "calls", "in", "out", "seconds"]


def document(runs: Mapping[str, RunInfo], entries: "Sequence[Entry]", costs: "Sequence[Cost]") -> str:
    """Return the whole page."""
    systems = sorted(
        {each.system for entry in entries for each in entry.systems}, key=lambda name: (name != OURS, name)
    )
    figures = ["file", "metric", "reading", "against", "statistic", "n", *systems, "minus the best floor", "floors"]
    return "\n".join(
        [
            "# Agreement with people",
            "",
            *(_heading(name, info) for name, info in runs.items()),
            "",
            *_table(figures, (_entry(entry, systems) for entry in entries)),
            "",
            "## Cost, and what was not scored",
            "",
            *_table(COSTS, map(_cost, costs)),
            "",
            NOTES,
        ]
    )


def _heading(name: str, info: RunInfo) -> str:
    parts = [
        f"ragstone {info.ragstone}, {info.date}",
        f"judge {info.judge}",
        *([f"embedder {info.embedder}"] if info.embedder else []),
        info.python,
        *([] if info.history else ["without the rows' history"]),
        *(
            f"{metric}: {', '.join(f'{option}={value}' for option, value in options.items())}"
            for metric, options in info.options.items()
            if options
        ),
    ]
    return f"- **{name}**: {'; '.join(parts)}"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in cells]


def _entry(entry: "Entry", systems: Sequence[str]) -> list[str]:
    figures = {figure.system: figure for figure in entry.systems}
    first = entry.systems[0]
    rows = str(first.rows) if first.rows == entry.of else f"{first.rows} of {entry.of}"
    return [
        entry.file,
        entry.metric,
        entry.reading,
        entry.label,
        entry.statistic,
        rows if _units(first) == first.rows else f"{_units(first)} ({rows} rows)",
        *(_figure(figures.get(name), _units(first)) for name in systems),
        "" if first.minus_floor is None else _estimate(first.minus_floor, "+"),
        ", ".join(
            f"{name} {_estimate(entry.floors[name])}"
            for name in sorted(entry.floors, key=lambda name: name != entry.best)
        ),
    ]


def _units(figure: "SystemFigure") -> int:
    return figure.estimate.units if figure.estimate else 0


def _figure(figure: "SystemFigure | None", units_of_first: int) -> str:
    if figure is None:
        return ""
    own = _estimate(figure.estimate)
    if _units(figure) != units_of_first:
        own += f" (n {_units(figure)})"
    if figure.ours_minus is None:
        return own
    beside = "" if figure.minus_floor is None else f"; minus the best floor {_estimate(figure.minus_floor, '+')}"
    return f"{own}; ours {_estimate(figure.ours_minus, '+')}{beside}"


def _estimate(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return "-"
    number = _number(estimate.value, sign)
    if estimate.low is None or estimate.high is None:
        return number
    return f"{number} [{_number(estimate.low, sign)}, {_number(estimate.high, sign)}]"


def _number(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.2f}"


def _cost(cost: "Cost") -> list[str]:
    spent = (cost.calls, cost.input_tokens, cost.output_tokens, cost.seconds)
    return [
        cost.file,
        cost.metric,
        cost.system,
        cost.version,
        f"{cost.scored}/{cost.rows}",
        ", ".join(f"{reason} {count}" for reason, count in sorted(cost.unscored.items())),
        *("-" if number is None else f"{number:,.0f}" for number in spent),
    ]
