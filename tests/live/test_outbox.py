"""The outbox's file, without threads: what goes in comes out, whatever it is; what is not ours is refused."""

import pytest

from ragstone import Sample, Score, Unscored
from ragstone.live import Record
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Choice, Pending
from ragstone.live.redaction import snapshot

from .live_app import change, rows

HOSTILE = [
    "a\x00b",
    "\ud83d",
    "é\N{COMBINING ACUTE ACCENT}👍\u202e\u2028\ufeff",
    "'); DROP TABLE samples; --",
    "",
    "x" * 1_000_000,
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "outbox.db"


@pytest.fixture
def outbox(path):
    outbox = Outbox(path)
    yield outbox
    outbox.close()


def job(name="s1", *metrics, **fields):
    sample = snapshot(Sample(id=name, user_input="Where?", retrieved_contexts=["Here."], **fields), name)
    return Pending(
        sample, name, 12.5, [Choice(metric, "1", 0.5, "rate") for metric in metrics or ("m",)], {"trace_id": "t"}
    )


def record(name="s1", **fields):
    outcome = Unscored(metric="m", reason="timeout", detail="", version="1")
    return Record(
        **{"sample_id": name, "outcome": outcome, "judge": "j", "submitted_at": 0.0, "scored_at": 1.5, **fields}
    )


def added(outbox, *jobs, mine=False):
    with outbox.transaction():
        return [outbox.add(each, mine=mine) for each in jobs]


def claimed(outbox, *metrics, most=100, **options):
    with outbox.transaction():
        return [each for each, _ in outbox.claim(most, metrics or ("m",), **options)]


def names(jobs):
    return [each.sample_id for each in jobs]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_texts(outbox, text):
    metadata = {"text": text, text: [text, {"deep": text}], "number": 2**70, "nan": float("nan"), "none": None}
    given = Sample(id="s1", user_input=text, retrieved_contexts=[text, ""], response=text, metadata=metadata)
    name = text if text.isascii() else "s1"
    before = Pending(snapshot(given, "s1"), name, 12.5, [Choice("m", "1", 0.5, "rate")], {"trace_id": text})
    assert added(outbox, before, before) == [True, False], "one of an id"
    (after,) = claimed(outbox)
    assert (after.sample_id, after.sample) == (name, before.sample)
    assert after.sample.model_fields_set == before.sample.model_fields_set
    assert (after.todo, after.origin, after.submitted_at) == (before.todo, before.origin, 12.5)
    assert after.attempts == 0


@pytest.mark.parametrize("text", HOSTILE[:2], ids=ascii)
def test_records(outbox, path, text):
    score = Score(metric=text, value=0.1 + 0.2, reason=text, breakdown={text: 1e-300}, version="1")
    before = record(
        outcome=score, judge=text, origin={"span_id": text}, sample=Sample(response=text, metadata={text: 1})
    )
    with outbox.transaction():
        outbox.keep(before, ["a", "b"])
    with outbox.transaction():
        ((seq, after),) = outbox.undelivered("b", 10)
        assert after == before
        outbox.delivered([seq])
        assert outbox.contents().records == {"a": 1}


@pytest.mark.parametrize("name", ["m", 'a"b', "a\\b", "a\x00b", "%", "\ud83d"])
def test_only_samples_of_ones_own_metrics(outbox, name):
    added(outbox, job("a", name), job("b", name + "x"), job("c", "x" + name, name), job("d", "x" + name))
    assert names(claimed(outbox, name, "nobody's")) == ["a", "c"]
    with outbox.transaction():
        assert set(outbox.contents().metrics) == {(name, "1"), (name + "x", "1"), ("x" + name, "1")}


SPOILED = ["", '{"sample": {}, "submitted_at": "x", "origin": {}, "todo": []}', "[" * 100_000, b"\xff\xfe"]


@pytest.mark.parametrize("body", SPOILED, ids=lambda body: ascii(body[:60]))
def test_a_spoiled_sample_is_left_and_the_others_go_on(outbox, path, body):
    added(outbox, job("a"), job("b"), job("c"))
    change(path, "UPDATE samples SET body = ? WHERE id = 'b'", body)
    assert names(claimed(outbox)) == ["a", "c"]
    assert claimed(outbox) == []
    with outbox.transaction():
        assert outbox.contents().unreadable == 1
    assert rows(path, "SELECT body FROM samples WHERE id = 'b'") == [(body,)]


def test_a_spoiled_record_is_left_and_the_others_go_on(outbox, path):
    with outbox.transaction():
        for name in "abc":
            outbox.keep(record(name), ["x"])
    change(path, "UPDATE records SET body = ? WHERE seq = 2", '{"sample_id": 1}')
    with outbox.transaction():
        assert [found.sample_id for _, found in outbox.undelivered("x", 10)] == ["a", "c"]
        assert outbox.contents().records == {"x": 2, "unreadable: x": 1}
