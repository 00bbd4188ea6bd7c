"""A population that people and a judge scored, made from a known truth; and labels of it, as a page's download."""

import random

from ragstone import Sample, Score
from ragstone.identity import sample_digest
from ragstone.labels.label_file import Draw, Label
from ragstone.report import Report
from ragstone.results.record import Record


def made(n=300, *, seed=1, metric="demo", judged=None, sample=None, **of_record):
    """Return a report, and what people say of each sample by its id.

    `judged(truth, i, draw)` is the judge's score, `sample(i)` more fields of a sample; `of_record` gives fields of
    records, each a function of the row.
    """
    draw = random.Random(seed)
    judged = judged or (lambda truth, i, draw: truth if draw.random() < 0.8 else 1.0)
    truth: dict[str, float] = {}
    records: list[Record] = []
    samples: list[Sample] = []
    for i in range(n):
        fields = {"id": f"q{i}", "user_input": f"Why {i}?", "response": "So."} | (sample(i) if sample else {})
        samples.append(Sample(**fields))
        truth[f"q{i}"] = float(draw.random() < 0.6)
        score = Score(metric=metric, value=judged(truth[f"q{i}"], i, draw), reason="", version="1")
        more = {name: give(i) for name, give in of_record.items()}
        records.append(Record(f"q{i}", score, "judge", i, **more))
    return Report.of(records, samples=samples), truth


def label_of(report, sample_id, answer, **more):
    """Return a label of a whole sample that was drawn."""
    record = next(record for record in report if record.sample_id == sample_id)
    sample = report.sample(record)
    facts = {
        "id": sample_id,
        "sample_digest": sample_digest(sample),
        "metric": record.outcome.metric,
        "version": record.outcome.version,
        "judge": record.judge,
        "kind": "score",
        "answer": answer,
        "draw": Draw(chance=0.1),
    }
    return Label(**facts | more)


def write(path, labels):
    path.write_text("".join(f"{each.model_dump_json()}\n" for each in labels))
    return path


def labelled(path, report, truth, ids, **more):
    """Write labels that say the truth, and return the file."""
    return write(path, [label_of(report, sample_id, truth[sample_id], **more) for sample_id in ids])
