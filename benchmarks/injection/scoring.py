"""Scoring the cases through `evaluate`, whose journal makes it resumable."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragstone import LLM, Embedder, Outcome, Sample, evaluate

from .cases import Case, runs
from .samples import Known, make_metric

Outcomes = Mapping[tuple[str, str, str], Outcome]
"""By metric, name of the sample and its texts (`key_of`)."""


def key_of(known: Known, sample: Sample) -> tuple[str, str, str]:
    """Return the key of a sample's outcome."""
    return known.metric, known.name, sample.model_dump_json()


def score(cases: Sequence[Case], llm: LLM, embedder: Embedder, journal: Path, *, calls: int) -> Outcomes:
    """Score all that the cases need, each once; what the journal holds is not judged again."""
    found: dict[tuple[str, str, str], Outcome] = {}
    for known, samples in runs(cases):
        metric = make_metric(known, llm, embedder)
        report = evaluate(
            samples, [metric], journal=journal, max_concurrency=calls, name=f"{known.metric} {known.name}"
        )
        for result in report.results():
            found[key_of(known, samples[result.row])] = result.outcome
    return found
