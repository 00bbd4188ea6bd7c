"""Scores in other languages beside those of their English twins.

    python benchmarks/languages --judge local --out DIR
    python benchmarks/languages --judge MODEL@URL --embedder MODEL@URL --out DIR --full

Scores a small set (samples.jsonl) in seven languages by the four metrics and writes DIR/languages.md and
DIR/languages.json. Outcomes are kept in DIR/journal.sqlite as they come: the same command goes on from there. Without
--full not every metric scores every row, which takes the embedded judge some 240 calls instead of 650; add
it for one metric (--metric) where the figures call for more.
"""

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import click
from language_figures import Scored, figures, splitting
from language_page import page
from language_rows import LANGUAGES, Row, read_rows

import ragstone
from ragstone import (
    LLM,
    AlignmentCoverage,
    ContextRelevancy,
    Embedder,
    Metric,
    ResponseRelevancy,
    SummarizationScore,
    evaluate,
)
from ragstone.cli.options import EMBEDDER_HELP, JUDGE_HELP, make_embedder, make_llm

# How many rows of a language each metric scores, unless asked for all. A judge that is asked one by one has about 2, 5,
# 7 and 9 calls for a row.
PLAN = {"response_relevancy": 4, "context_relevancy": 2, "summarization_score": 1, "alignment_coverage": 1}
SUMMARIES = ("summarization_score", "alignment_coverage")
NAMED = ("de", "es")  # in Latin letters, so that the script does not tell how to split


def metrics_for(language: str, llm: LLM, embedder: Embedder) -> list[Metric]:
    """Return the metrics as a user of this language would set them."""
    named = language if language in NAMED else None
    return [
        ResponseRelevancy(llm=llm, embedder=embedder),
        ContextRelevancy(llm=llm, language=named),
        SummarizationScore(llm=llm),
        AlignmentCoverage(llm=llm, source="retrieved_contexts", n_questions=2, language=named),
    ]


def score(
    rows: Sequence[Row], llm: LLM, embedder: Embedder, out: Path, *, names: Sequence[str], full: bool, concurrency: int
) -> list[Scored]:
    """Score the rows; what the journal in `out` holds already is not asked again."""
    scored: list[Scored] = []
    for language in LANGUAGES:
        own = [row for row in rows if row.language == language]
        for metric in metrics_for(language, llm, embedder):
            chosen = own if full else own[: PLAN[metric.name]]
            if metric.name not in names or not chosen:
                continue
            report = evaluate(
                [row.sample(summary=metric.name in SUMMARIES) for row in chosen],
                [metric],
                journal=out / "journal.sqlite",
                max_concurrency=concurrency,
                progress=False,
                name=f"languages {language}",
            )
            scored += [Scored(language, chosen[r.row].id, metric.name, r.outcome) for r in report.results()]
            print(f"{language} {metric.name}: {len(chosen)} rows", file=sys.stderr, flush=True)
    return scored


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", required=True, help=JUDGE_HELP)
    parser.add_argument("--embedder", help=EMBEDDER_HELP)
    parser.add_argument("--out", type=Path, required=True, help="Folder for the page, the figures and the journal.")
    parser.add_argument("--metric", action="append", choices=tuple(PLAN), help="Only this one; may be repeated.")
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="Only this one, and English.")
    parser.add_argument("--full", action="store_true", help="Every metric on every row.")
    parser.add_argument("--concurrency", type=int, default=4, help="Calls in flight at most (4).")
    args = parser.parse_args(arguments)
    languages = {"en", *(args.language or LANGUAGES)}
    rows = [row for row in read_rows() if row.language in languages]
    try:
        llm = make_llm(args.judge, max_concurrency=args.concurrency)
        embedder = make_embedder(args.embedder, args.judge, llm, max_concurrency=args.concurrency)
    except click.ClickException as error:
        parser.error(error.message)
    args.out.mkdir(parents=True, exist_ok=True)
    names = args.metric or tuple(PLAN)
    scored = score(rows, llm, embedder, args.out, names=names, full=args.full, concurrency=args.concurrency)
    facts = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "judge": f"{llm.model}, asked {llm.asking.replace('_', ' ')}",
        "embedder": embedder.model,
        "versions": f"ragstone {ragstone.__version__}, Python {platform.python_version()}",
        "rows": "all"
        if args.full
        else ", ".join(f"{metric} {n} of 4" for metric, n in PLAN.items() if metric in names),
    }
    table, splits = figures(scored, names), splitting(rows)
    values = [
        {
            "language": s.language,
            "id": s.id,
            "metric": s.metric,
            "version": s.outcome.version,
            **({"unscored": s.outcome.reason, "detail": s.outcome.detail} if s.value is None else {"value": s.value}),
            "written": s.made(),
        }
        for s in scored
    ]
    everything = {**facts, "figures": table, "splitting": splits, "outcomes": values}
    (args.out / "languages.json").write_text(
        json.dumps(everything, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    text = page(facts, table, splits)
    (args.out / "languages.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
