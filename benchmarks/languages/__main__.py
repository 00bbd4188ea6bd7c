"""Scores in other languages beside those of their English twins.

    python benchmarks/languages --judge local --out DIR
    python benchmarks/languages --judge MODEL@URL --embedder MODEL@URL --out DIR --full

Scores a small set (samples.jsonl) in seven languages by the four metrics and writes DIR/languages.md and
DIR/languages.json. Outcomes are kept in DIR/journal.sqlite as they come: the same command goes on from there. Without
--full not every metric scores every row, which takes the embedded judge some 240 calls instead of 650; add
it for one metric (--metric) where the figures call for more.
"""

import json
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import mean
from typing import Any

import click
from language_set import LANGUAGES, Row, detect_language, read_rows

import ragstone
from ragstone import (
    LLM,
    AlignmentCoverage,
    ContextRelevancy,
    Embedder,
    Limits,
    Metric,
    ResponseRelevancy,
    Score,
    SummarizationScore,
    Unscored,
    evaluate,
)
from ragstone.cli.options import EMBEDDER_HELP, JUDGE_HELP, connected_embedder, connected_llm
from ragstone.text import language_of, split_sentences

# How many rows of a language each metric scores, unless asked for all. A judge that is asked one by one has about 2, 5,
# 7 and 9 calls for a row.
PLAN = {"response_relevancy": 4, "context_relevancy": 2, "summarization_score": 1, "alignment_coverage": 1}
SUMMARIES = ("summarization_score", "alignment_coverage")
NAMED = ("de", "es")  # in Latin letters, so that the script does not tell how to split
WITHIN = 0.1
NOTES = """\
- **difference**: mean absolute difference to the English twin, over the rows that have a score in both languages;
  **within .1**: the share of those rows that are at most .1 apart. Neither says whether the English score is right.
- **in its language**: questions and claims that the judge wrote, by a plain check: the script, and for Latin letters
  the more common words. It knows the languages of this table and no others.
- **split exactly**: texts (contexts, responses, summaries) that are split into just the sentences they were written as;
  with the language left out, which goes by the script; with it named; and by the rules for English.
- The set was written for this benchmark, with a few short texts per language. It finds what is broken, and ranks
  nothing. Few rows make coarse figures: one of 5 sentences judged otherwise moves a context_relevancy by .2."""


@dataclass(frozen=True)
class Scored:
    """What one metric gave for one row."""

    row: Row
    metric: str
    outcome: Score | Unscored

    @property
    def value(self) -> float | None:
        return self.outcome.value if isinstance(self.outcome, Score) else None

    @property
    def written(self) -> list[str]:
        """What the judge wrote: questions, and claims where they are not the response's own sentences."""
        verdicts = self.outcome.verdicts if isinstance(self.outcome, Score) else ()
        own = [verdict for verdict in verdicts if verdict.kind in ("question", "claim", "source_answer")]
        return [verdict.text for verdict in own if all(shown.field != "response" for shown in verdict.evidence)]


def metrics_for(language: str, llm: LLM, embedder: Embedder) -> list[Metric]:
    """Return the metrics as a user of this language would set them."""
    named = language if language in NAMED else None
    return [
        ResponseRelevancy(llm=llm, embedder=embedder),
        ContextRelevancy(llm=llm, language=named),
        SummarizationScore(llm=llm),
        AlignmentCoverage(llm=llm, source="retrieved_contexts", n_questions=2, language=named),
    ]


def score(rows: Sequence[Row], metric: Metric, journal: Path, calls: int) -> list[Scored]:
    """Score rows; what the journal holds already is not asked again."""
    samples = [row.sample(summary=metric.name in SUMMARIES) for row in rows]
    report = evaluate(samples, [metric], journal=journal, limits=Limits(max_concurrency=calls), progress=False)
    print(f"{rows[0].language} {metric.name}: {len(rows)} rows", file=sys.stderr, flush=True)
    return [Scored(rows[result.row], metric.name, result.outcome) for result in report.results()]


def figures(scored: Sequence[Scored]) -> list[dict[str, Any]]:
    """Return a row per metric and language; the differences are over rows that both twins have a score for."""
    values = {(each.metric, each.row.language, each.row.id): each.value for each in scored}
    table: list[dict[str, Any]] = []
    for metric, language in sorted({(each.metric, each.row.language) for each in scored}, key=_order):
        own = [each for each in scored if (each.metric, each.row.language) == (metric, language)]
        pairs = [(each.value, values.get((metric, "en", each.row.id))) for each in own]
        apart = [abs(a - b) for a, b in pairs if a is not None and b is not None]
        known = [each.value for each in own if each.value is not None]
        languages = Counter(detect_language(text) for each in own for text in each.written)
        table.append(
            {
                "metric": metric,
                "language": language,
                "rows": len(own),
                "unscored": dict(Counter(each.outcome.reason for each in own if isinstance(each.outcome, Unscored))),
                "mean": mean(known) if known else None,
                "twins": len(apart),
                "difference": mean(apart) if apart else None,
                "within": sum(each <= WITHIN + 1e-9 for each in apart) / len(apart) if apart else None,
                "written": languages.total(),
                "in_its_language": languages[language],
                "in_other_languages": {name: n for name, n in sorted(languages.items()) if name != language},
                "llm_calls": sum(each.outcome.usage.llm_calls for each in own),
                "seconds": sum(each.outcome.usage.seconds for each in own),
            }
        )
    return table


def _order(of: tuple[str, str]) -> tuple[int, int]:
    return list(PLAN).index(of[0]), LANGUAGES.index(of[1])


def splitting(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return, per language, the share of texts that are split into exactly the sentences they were written as."""
    table: list[dict[str, Any]] = []
    for language in LANGUAGES:
        texts = [(row.text(each), each) for row in rows if row.language == language for each in row.texts()]
        if texts:
            table.append(
                {
                    "language": language,
                    "texts": len(texts),
                    "sentences": sum(len(sentences) for _, sentences in texts),
                    "unnamed": mean(_is_exact(text, wanted, language_of(text)) for text, wanted in texts),
                    "named": mean(_is_exact(text, wanted, language) for text, wanted in texts),
                    "english": mean(_is_exact(text, wanted, "en") for text, wanted in texts),
                }
            )
    return table


def _is_exact(text: str, wanted: list[str], language: str) -> bool:
    return [sentence.text.strip() for sentence in split_sentences(text, language)] == wanted


def page(facts: dict[str, str], table: Sequence[dict[str, Any]], splits: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a page of Markdown."""
    lines = ["# Languages", "", *(f"- {name}: {value}" for name, value in facts.items())]
    head = ("language", "rows", "mean", "difference", "within .1", "in its language", "unscored", "calls", "seconds")
    for metric in dict.fromkeys(row["metric"] for row in table):
        lines += ["", f"## {metric}", "", _line(head), _line(["---"] * len(head))]
        lines += [_line(_cells(row)) for row in table if row["metric"] == metric]
    head = ("language", "texts", "sentences", "language left out", "named", "as English")
    lines += ["", "## Sentences split exactly", "", _line(head), _line(["---"] * len(head))]
    for row in splits:
        shares = [f"{row[way]:.0%}" for way in ("unnamed", "named", "english")]
        lines.append(_line([row["language"], row["texts"], row["sentences"], *shares]))
    return "\n".join([*lines, "", NOTES, ""])


def _cells(row: dict[str, Any]) -> list[object]:
    written = f"{row['in_its_language']} of {row['written']}" if row["written"] else ""
    if row["in_other_languages"]:
        written += f" ({', '.join(f'{n} {language}' for language, n in row['in_other_languages'].items())})"
    return [
        row["language"],
        row["rows"],
        _number(row["mean"], ".2f"),
        "" if row["language"] == "en" else _number(row["difference"], ".2f"),
        "" if row["language"] == "en" else _number(row["within"], ".0%"),
        written,
        ", ".join(f"{n} {reason}" for reason, n in row["unscored"].items()),
        row["llm_calls"],
        f"{row['seconds']:.0f}",
    ]


def _number(value: float | None, form: str) -> str:
    return "none" if value is None else f"{value:{form}}"


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


@click.command()
@click.option("--judge", required=True, help=JUDGE_HELP)
@click.option("--embedder", help=EMBEDDER_HELP)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="For page and journal.")
@click.option("--metric", "metrics", multiple=True, type=click.Choice(list(PLAN)), help="Only this one; repeatable.")
@click.option("--language", "languages", multiple=True, type=click.Choice(LANGUAGES), help="Only this, and English.")
@click.option("--full", is_flag=True, help="Every metric on every row.")
@click.option("--concurrency", "calls", default=4, show_default=True, help="Calls in flight at most.")
def main(
    judge: str,
    embedder: str | None,
    out: Path,
    metrics: Sequence[str],
    languages: Sequence[str],
    full: bool,
    calls: int,
) -> None:
    """Score the set, and write the page and the figures."""
    llm = connected_llm(judge, max_concurrency=calls)
    vectors = connected_embedder(embedder, judge, llm, max_concurrency=calls)
    out.mkdir(parents=True, exist_ok=True)
    chosen = [row for row in read_rows() if not languages or row.language in {"en", *languages}]
    scored: list[Scored] = []
    for language in LANGUAGES:
        own = [row for row in chosen if row.language == language]
        for metric in metrics_for(language, llm, vectors):
            if own and (not metrics or metric.name in metrics):
                scored += score(own if full else own[: PLAN[metric.name]], metric, out / "journal.sqlite", calls)
    shares = ", ".join(f"{metric} {n} of 4" for metric, n in PLAN.items() if not metrics or metric in metrics)
    facts = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "judge": f"{llm.model}, asked {llm.asking.replace('_', ' ')}",
        "embedder": vectors.model,
        "versions": f"ragstone {ragstone.__version__}, Python {platform.python_version()}",
        "rows": "all" if full else shares,
    }
    table, splits = figures(scored), splitting(chosen)
    outcomes = [
        {
            "language": each.row.language,
            "id": each.row.id,
            "metric": each.metric,
            "version": each.outcome.version,
            **each.outcome.model_dump(include={"value"} if isinstance(each.outcome, Score) else {"reason", "detail"}),
            "written": each.written,
        }
        for each in scored
    ]
    content = {**facts, "figures": table, "splitting": splits, "outcomes": outcomes}
    (out / "languages.json").write_text(f"{json.dumps(content, ensure_ascii=False, indent=1)}\n", encoding="utf-8")
    (out / "languages.md").write_text(page(facts, table, splits), encoding="utf-8")
    click.echo((out / "languages.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
