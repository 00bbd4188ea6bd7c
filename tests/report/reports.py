"""Reports to ask of, made of plain numbers."""

import base64
import gzip
import json
import re

import pytest

from ragstone import Evidence, Sample, Score, Unscored, Usage, Verdict
from ragstone.report import Report
from ragstone.results.record import Record


def data_of(html):
    """Return what the page's script reads, as strict as a browser does."""
    data = re.search('<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1]
    return json.loads(data, parse_constant=pytest.fail)


def rows_of(html):
    """Return what stands packed on a page: its rows, their texts, and those of another report."""
    packed = re.search('<script type="application/gzip" id="rows">(.*?)</script>', html)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)), parse_constant=pytest.fail)


def words_of(html):
    """Return all that a page says beside its samples: the words of its data, in their order."""
    return " ".join(words({name: value for name, value in data_of(html).items() if name != "meanings"}))


def words(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from words(each)
    elif value is not None:
        yield f"{value:.3f}" if isinstance(value, float) else str(value)


def scored(value, metric="demo", **changes):
    given = {"reason": f"It is {value}.", "version": "1", "usage": Usage(llm_calls=2, input_tokens=10, output_tokens=1)}
    return Score(metric=metric, value=value, **{**given, **changes})


def unscored(reason="timeout", detail="after 60 s", metric="demo", **changes):
    return Unscored(metric=metric, reason=reason, detail=detail, **{"version": "1", **changes})


def records(values, *, metric="demo", ids=None, judge="judge", **changes):
    """Return a record per row: a number is a score, None a time-out."""
    for row, value in enumerate(values):
        outcome = unscored(metric=metric) if value is None else scored(value, metric, **changes)
        yield Record(f"q{row}" if ids is None else ids[row], outcome, judge, row)


def report(values, *, name="", samples=None, metrics=(), bad_rows=(), **changes):
    return Report.of(records(values, **changes), metrics, samples=samples, bad_rows=bad_rows, name=name)


def rich(text, n=3):
    """Return a report in which every text that comes from outside is this one."""
    verdicts = [
        Verdict(id=text, kind="claim", text=text, verdict="contradicted", lowers_score=True),
        Verdict(
            id="1", kind="sentence", text=text, verdict="irrelevant", lowers_score=True,
            evidence=(Evidence(field="response", start=0, end=4, text=text[:4]),),
        ),
    ]  # fmt: skip
    given = []
    for row in range(n):
        for metric in ("alignment_coverage", "context_relevancy", text):
            score = scored(0.1 * row, metric, reason=text, breakdown={text: 0.5}, verdicts=verdicts, version=text)
            given.append(Record(text + str(row), score, text, row))
        given.append(Record(text + str(row), unscored(detail=text, metric="faithfulness", version=text), text, row))
    sample = Sample(user_input=text, retrieved_contexts=[text, "b" * 5_000], response=text, metadata={text: text})
    return Report.of(given, samples=[sample] * n, name=text)
