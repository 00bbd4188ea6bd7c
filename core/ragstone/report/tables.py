"""Numbers as text, and tables: on a terminal, in a notebook, on a page; a frame with a column for each metric."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, get_args

from ragstone.hinting import Hinting
from ragstone.plain import count, printable
from ragstone.report.aggregates import key_of
from ragstone.report.statistics import TIE
from ragstone.results.frames import FRAME_COLUMNS, REAL, Cell, plain_cell, to_frame
from ragstone.sample import SampleField
from ragstone.text.plain import html_table, text_table

if TYPE_CHECKING:
    from ragstone.report.aggregates import Cost, MetricSummary
    from ragstone.report.statistics import Interval
    from ragstone.results.record import Record

# Between the ends of a range.
DASH = "\u2013"
INTERVAL = "95 % interval"
ASSUMES = f"{INTERVAL}s assume that rows, or their groups, are a random draw, and that scores lie within their bounds"
_COSTS = (
    ("llm_calls", "judge call", ""),
    ("embed_calls", "embedder call", ""),
    ("input_tokens", "token", " in"),
    ("output_tokens", "token", " out"),
)
FEW_GROUPS = "{}, and fewer than 5 say too little of others"
_NAME = 100
_WIDTH = 80


def number(value: float | None, sign: str = "") -> str:
    """A score; a dash where there is none."""
    return DASH if value is None else f"{value:{sign}.3f}"


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    """An interval; a dash where there is none."""
    return DASH if low is None or high is None else f"{number(low, sign)} {DASH} {number(high, sign)}"


def interval_of(e: "Interval | None", sign: str = "") -> str:
    """An interval's ends; of some values that give none, why; of no values, a dash."""
    return DASH if e is None else f"no interval: {e.lacks}" if e.lacks else interval(e.low, e.high, sign)


def narrower(e: "Interval | None", noun: str, sign: str = "") -> str:
    """The words beside an interval: the narrower one, and what it assumes; "" where it says no more."""
    if e is None or e.narrower is None or e.narrower[1] - e.narrower[0] < TIE:
        return ""
    these = of_groups(count(e.n, noun), e.groups)
    return f"{interval(e.narrower[0], e.narrower[1], sign)} if nothing rarer exists than these {these} show"


def spaced(name: str) -> str:
    """A name in words."""
    return name.replace("_", " ")


def percent(share: float) -> str:
    """A share as percent."""
    return f"{100 * share:.1f} %"


def of_groups(rows: str, groups: str) -> str:
    """How many rows there are, and of how many groups, where these are fewer."""
    return f"{rows} of {groups}" if groups else rows


def moment(at: float | None) -> str:
    """A time in UTC, to the minute."""
    return "unknown" if at is None else f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M}"


def cost_line(cost: "Cost", price: tuple[float, float] | None) -> str:
    """Judge calls, embedder calls if any, tokens in and out, and money. What no provider counts is unknown, never 0."""
    parts: list[str] = []
    for name, noun, way in _COSTS:
        n, unknown = int(cost.sums[name]), cost.unknown[name]
        if unknown and not n:
            parts.append(f"{noun}s{way} unknown")
        elif n or name != "embed_calls":
            parts.append(f"{'at least ' if unknown else ''}{count(n, noun)}{way}")
    if price is not None:
        parts.append(f"cost {money(cost, price)}")
    return ", ".join(parts)


def money(cost: "Cost", price: tuple[float, float]) -> str:
    """The cost of a judge's tokens; unknown where the judge does not count them."""
    if cost.unknown["tokens"]:
        return "unknown"
    spent = (price[0] * cost.sums["input_tokens"] + price[1] * cost.sums["output_tokens"]) / 1e6
    return f"{spent:,.2f}" if spent >= 1 else f"{spent:.4f}"


def slice_cells(means: "Mapping[str, Interval]", most: int = 20) -> list[tuple[str, str, str, str]]:
    """The value, n, mean and interval of the first ones, and how many more there are."""
    cells = [(value or "none", f"{e.n:,}", number(e.mean), interval_of(e)) for value, e in means.items()]
    return cells[:most] + ([(f"and {len(cells) - most:,} more", "", "", "")] if len(cells) > most else [])


class Tabular(Hinting, ABC):
    """What shows itself: `print` as a table with remarks, a notebook likewise."""

    @abstractmethod
    def table(self) -> tuple[str, Sequence[str], list[tuple[str, ...]]]:
        """The title, head and rows of a table that has all metrics; the first column is the name."""

    @abstractmethod
    def remarks(self) -> Iterator[str]:
        """Yield remarks beside the table, in sentences."""

    @abstractmethod
    def conclusion(self) -> str:
        """Its one sentence, or a line for each metric. A page opens with it; "" says nothing."""

    def data(self) -> dict[str, object]:
        """Its data for a page, as JSON can hold them."""
        title, head, rows = self.table()
        return {"title": title, "head": head, "rows": rows, "remarks": list(self.remarks())}

    def figures(self) -> dict[str, object]:
        """Its numbers by metric, as JSON can hold them, for --json."""
        return self.data()

    def __str__(self) -> str:
        title, head, rows = self.table()
        cells = [[printable(cell, _NAME) for cell in row] for row in rows]
        table = text_table(head, cells, width=_WIDTH) if rows else []
        sentences = [*(self.conclusion().splitlines() if rows else ()), *self.remarks()]
        return "\n".join([printable(title, 2 * _NAME), *table, *map(printable, sentences)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self.table(), self.remarks())


def wide_frame(rows: "Iterable[Sequence[Record]]", summaries: "Mapping[str, MetricSummary]") -> Any:  # noqa: ANN401 - a pandas.DataFrame
    """A pandas DataFrame with a row for each sample and a column for each metric; a missing value is NA."""
    fields = get_args(SampleField)
    kinds = {name: FRAME_COLUMNS[name] for name in ("row", "sample_id", *fields)}
    # A criterion may have the name of a text.
    names = {each.info.key: f"{name} score" if name in kinds else name for name, each in summaries.items()}
    kept: list[dict[str, Cell]] = []
    for records in rows:
        sample = records[0].sample
        texts = {} if sample is None else sample.model_dump()
        values: dict[str, Cell] = dict.fromkeys(names.values())
        for record in records:
            values[names[key_of(record)]] = record.outcome.value
        cells = {name: plain_cell(texts.get(name) or None) for name in fields}
        kept.append({"row": records[0].row, "sample_id": records[0].sample_id, **cells, **values})
    return to_frame(kept, kinds | dict.fromkeys(names.values(), REAL))
