"""A comparison as a table of text, and as one for a notebook."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragstone.reporting.batch.text import count_of
from ragstone.reporting.live.markup import cut, foreign, tag, together
from ragstone.reporting.live.pieces import DASH, table
from ragstone.text.plain import printable, text_table

if TYPE_CHECKING:
    from ragstone.reporting.comparison.comparison import Comparison, MetricComparison

HEAD = ("metric", "pairs", "a", "b", "b - a", "95 % interval", "p (permutation)", "p (sign)", "b better/same/worse")


def comparison_text(found: "Comparison") -> str:
    """Return a comparison as lines: a table, then what it says of each metric, and what else is to be said."""
    lines = [f"a: {printable(found.name_a, 100)}", f"b: {printable(found.name_b, 100)}"]
    lines += text_table(HEAD, [[printable(cell, 100) for cell in cells(each)] for each in found.metrics.values()])
    lines += [f"{printable(each.name, 100)}: {conclusion(each)}" for each in found.metrics.values()]
    for each in found.metrics.values():
        if each.moved:
            most = ", ".join(f"{printable(m.sample_id, 40)} {m.a:.3f} to {m.b:.3f}" for m in each.moved[:5])
            lines.append(f"moved most by {printable(each.name, 100)}: {most}")
    return "\n".join([*lines, *map(printable, others(found))])


def comparison_html(found: "Comparison") -> str:
    """Return a comparison as a table for a notebook, every text in it escaped."""
    said = [f"{each.name}: {conclusion(each)}" for each in found.metrics.values()]
    return together(
        [
            overview_table(found, [foreign(name) for name in found.metrics]),
            *(tag("p", foreign(text)) for text in (*said, *others(found))),
        ]
    )


def overview_table(found: "Comparison", names: list[str]) -> str:
    """Return all metrics in one table.

    Args:
        found: The comparison.
        names: What stands for each metric's name.
    """
    rows = [(name, *cells(each)[1:]) for name, each in zip(names, found.metrics.values(), strict=True)]
    caption = f"a: {cut(found.name_a, 100)}; b: {cut(found.name_b, 100)}"
    return table(caption, HEAD, rows, numbers=len(HEAD) - 1)


def cells(each: "MetricComparison") -> tuple[str, ...]:
    """Return a metric's row of the table."""
    return (
        each.name,
        f"{each.pairs:,}",
        _number(each.mean_a),
        _number(each.mean_b),
        DASH if each.difference is None else f"{each.difference:+.3f}",
        between(each),
        p_value(each.permutation_p),
        p_value(each.sign_p),
        f"{each.wins:,}/{each.ties:,}/{each.losses:,}",
    )


def between(each: "MetricComparison") -> str:
    """Return the difference's interval; a dash where there is none."""
    return DASH if each.low is None or each.high is None else f"{each.low:+.3f} {DASH} {each.high:+.3f}"


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"


def p_value(p: float | None) -> str:
    """Return a p-value.

    Example:
        >>> p_value(0.04999), p_value(0.00002), p_value(None)
        ('0.0500', '< 0.0001', '–')
    """
    return DASH if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def conclusion(each: "MetricComparison") -> str:
    """Return what the numbers say of a metric, in a sentence or two."""
    if each.difference is None:
        return "no sample has a score in both."
    small = f"{each.difference:+.3f}"
    noise = "" if each.noise_reach is None else f" (the judge's own noise makes up to ±{each.noise_reach:.3f})"
    if each.within_noise:
        said = f"the difference of {small} is smaller than the judge's own noise, ±{each.noise_reach:.3f}."
    elif each.better is None:
        said = f"no difference is shown: {small}, p = {p_value(each.permutation_p)}{noise}."
    else:
        p = p_value(each.permutation_p)
        said = f"{each.better} is better: {small}, p {p if p.startswith('<') else f'= {p}'}{noise}."
    direction = "" if each.higher_is_better else " (Lower is better.)"
    return f"{said}{direction}{''.join(f' {text}' for text in _caveats(each))}"


def _caveats(each: "MetricComparison") -> Iterator[str]:
    if each.noise_from in ("a", "b"):
        other = "b" if each.noise_from == "a" else "a"
        yield f"The noise is that of {each.noise_from}'s draws; {other} has none and is taken to be as noisy."
    if each.facts_a.key != each.facts_b.key:
        yield "Versions or judges differ: this is not a comparison of the systems alone."
    missing = [
        f"{n:,} {what}"
        for n, what in (
            (each.unscored_a, "unscored in a alone"),
            (each.unscored_b, "unscored in b alone"),
            (each.unscored_both, "unscored in both"),
            (each.only_a, "only in a"),
            (each.only_b, "only in b"),
        )
        if n
    ]
    if missing:
        yield f"Left out: {', '.join(missing)}."


def others(found: "Comparison") -> Iterator[str]:
    """Yield what else is to be said."""
    if found.repeated_ids:
        are = "id stands" if found.repeated_ids == 1 else "ids stand"
        yield f"{found.repeated_ids:,} {are} more than once: their rows are paired in order."
    if found.left_out:
        yield f"Not compared: {', '.join(found.left_out)}."
    if len(found.metrics) > 1:
        yield f"{len(found.metrics)} metrics are compared: their p-values are not corrected for that."
    yield from (*found.a.notes, *found.b.notes)
    for name, report in ((found.name_a, found.a), (found.name_b, found.b)):
        if report.bad_rows:
            yield f"{name}: {count_of(len(report.bad_rows))} held no sample."
