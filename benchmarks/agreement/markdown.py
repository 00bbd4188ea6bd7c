"""The table as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .facts import OURS, Facts
from .statistics import Estimate

if TYPE_CHECKING:
    from .table import Cost, Entry, Found

NOTES = """\
- In brackets: 95 % bootstrap intervals, over pairs, rows or documents; n: those units, of the rows that have a score;
  beside a figure where it has more or fewer of them.
- "ours" is ragstone's figure minus that system's, on the rows that both scored, with the interval of the difference.
- Floors are trivial scorers on the same rows. For an error, lower is better; for all else, higher.
- "Seconds" are the rows' wall time, added up. A dash: undefined, or not counted."""


def document(facts: Mapping[str, Facts], entries: "Sequence[Entry]", costs: "Sequence[Cost]") -> str:
    """Return the whole page."""
    systems = sorted(
        {found.system for entry in entries for found in entry.systems}, key=lambda name: (name != OURS, name)
    )
    return "\n".join(
        [
            "# Agreement with people",
            "",
            *(_heading(name, each) for name, each in facts.items()),
            "",
            *_rows(
                ["file", "metric", "reading", "against", "statistic", "n", *systems, "floors"],
                (_entry(entry, systems) for entry in entries),
            ),
            "",
            "## Cost, and what was not scored",
            "",
            *_rows(
                ["file", "metric", "system", "version", "scored", "unscored", "calls", "tokens in", "tokens out",
                 "seconds", "sd of draws"],
                map(_cost, costs),
            ),
            "",
            NOTES,
        ]
    )  # fmt: skip


def _heading(name: str, facts: Facts) -> str:
    with_options = [
        f"{metric}: {', '.join(f'{key}={value}' for key, value in given.items())}"
        for metric, given in facts.options.items()
        if given
    ]
    said = [
        f"ragstone {facts.ragstone}, {facts.date}",
        f"judge {facts.judge}",
        *([f"embedder {facts.embedder}"] if facts.embedder else []),
        facts.python,
        *([f"{facts.repeat} draws of each row"] if facts.repeat > 1 else []),
        *with_options,
    ]
    return f"- **{name}**: {'; '.join(said)}"


def _rows(names: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    return [_row(names), _row(["---"] * len(names)), *map(_row, cells)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _entry(entry: "Entry", systems: Sequence[str]) -> list[str]:
    found = {each.system: each for each in entry.systems}
    floors = ", ".join(f"{name} {_number(value)}" for name, value in entry.floors.items())
    return [
        entry.file,
        entry.metric,
        entry.reading,
        entry.label,
        entry.statistic,
        _count(entry),
        *(_found(found.get(name), _units(entry.systems[0])) for name in systems),
        floors,
    ]


def _count(entry: "Entry") -> str:
    first = entry.systems[0]
    units = _units(first)
    rows = str(first.rows) if first.rows == entry.of else f"{first.rows} of {entry.of}"
    return rows if units == first.rows else f"{units} ({rows} rows)"


def _units(found: "Found") -> int:
    return found.estimate.units if found.estimate else 0


def _found(found: "Found | None", all_units: int) -> str:
    if found is None:
        return ""
    own = _estimate(found.estimate)
    if _units(found) != all_units:
        own += f" (n {_units(found)})"
    return own if found.ours_minus is None else f"{own}; ours {_estimate(found.ours_minus, sign=True)}"


def _estimate(found: Estimate | None, *, sign: bool = False) -> str:
    if found is None:
        return "-"
    number = _number(found.value, sign=sign)
    if found.low is None or found.high is None:
        return number
    return f"{number} [{_number(found.low, sign=sign)}, {_number(found.high, sign=sign)}]"


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"


def _cost(cost: "Cost") -> list[str]:
    unscored = ", ".join(f"{reason} {count}" for reason, count in sorted(cost.unscored.items()))
    return [
        cost.file,
        cost.metric,
        cost.system,
        cost.version,
        f"{cost.scored}/{cost.rows}",
        unscored,
        *("-" if number is None else f"{number:,.0f}" for number in _spent(cost)),
        "" if cost.draw_sd is None else f"{cost.draw_sd:.3f}",
    ]


def _spent(cost: "Cost") -> tuple[float | None, ...]:
    return cost.calls, cost.input_tokens, cost.output_tokens, cost.seconds
