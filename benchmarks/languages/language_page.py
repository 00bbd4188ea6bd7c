"""The figures as a page of Markdown."""

from collections.abc import Mapping, Sequence

NOTES = """\
- **difference**: mean absolute difference to the English twin, over the rows that have a score in both languages;
  **within .1**: the share of those rows that are at most .1 apart. Neither says whether the English score is right.
- **in its language**: questions and claims that the judge wrote, by a plain check: the script, and for Latin letters
  the more common words. It knows the languages of this table and no others.
- **split exactly**: texts (contexts, responses, summaries) that are split into just the sentences they were written as;
  with the language left out, which goes by the script; with it named; and by the rules for English.
- The set was written for this benchmark, with a few short texts per language. It finds what is broken, and ranks
  nothing. Few rows make coarse figures: one of 5 sentences judged otherwise moves a context_relevancy by .2."""


def page(
    facts: Mapping[str, str], figures: Sequence[Mapping[str, object]], splits: Sequence[Mapping[str, object]]
) -> str:
    """Return the page.

    Args:
        facts: What was run: by name.
        figures: As `language_figures.figures` returns them.
        splits: As `language_figures.splitting` returns them.
    """
    lines = ["# Languages", "", *(f"- {name}: {value}" for name, value in facts.items())]
    head = ("language", "rows", "mean", "difference", "within .1", "in its language", "unscored", "calls", "seconds")
    for metric in dict.fromkeys(str(row["metric"]) for row in figures):
        lines += ["", f"## {metric}", "", *_head(head)]
        lines += [_line(_cells(row)) for row in figures if row["metric"] == metric]
    lines += ["", "## Sentences split exactly", ""]
    lines += _head(("language", "texts", "sentences", "language left out", "named", "as English"))
    for row in splits:
        shares = [_share(row[way]) for way in ("unnamed", "named", "english")]
        lines.append(_line([str(row["language"]), str(row["texts"]), str(row["sentences"]), *shares]))
    return "\n".join([*lines, "", NOTES, ""])


def _cells(row: Mapping[str, object]) -> list[str]:
    twin = row["language"] == "en"
    written = f"{row['in_its_language']} of {row['written']}" if row["written"] else ""
    others = row["in_other_languages"]
    if isinstance(others, dict) and others:
        written += f" ({', '.join(f'{n} {language}' for language, n in others.items())})"
    unscored = row["unscored"]
    reasons = ", ".join(f"{n} {reason}" for reason, n in unscored.items()) if isinstance(unscored, dict) else ""
    return [
        str(row["language"]),
        str(row["rows"]),
        _number(row["mean"]),
        "" if twin else _number(row["difference"]),
        "" if twin else _share(row["within"]),
        written,
        reasons,
        str(row["llm_calls"]),
        f"{row['seconds']:.0f}",
    ]


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float | int) else "none"


def _share(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, float | int) else "none"


def _head(names: Sequence[str]) -> list[str]:
    return [_line(names), _line(["---"] * len(names))]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
