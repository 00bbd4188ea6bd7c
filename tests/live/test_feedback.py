"""What people say of answers afterwards: kept beside the outcomes, and what sampling left out is scored for it."""

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ragstone import Sample
from ragstone.live import CallableSink, Feedback
from ragstone.live.outbox import Outbox
from ragstone.live.sampling import Sampling

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Kept, Second, adds_up, live, metric, sample, submit, yes
from .live_app import OUTBOX, app, change, rows

pytestmark = pytest.mark.usefixtures("own_folder")
WHERE = pytest.mark.parametrize("place", [{}, {"outbox": OUTBOX}], ids=["memory", "outbox"])


class Said(Kept):
    """Keeps what people said, too, unless `trouble` is made with it."""

    def __init__(self, name: str = "said", trouble: Callable[[Sequence[Any]], object] | None = None) -> None:
        super().__init__(name, trouble)
        self.said: list[Feedback] = []

    def feedback(self, feedback: Sequence[Feedback]) -> None:
        if self.trouble is not None:
            self.trouble(feedback)
        self.said += feedback

    @property
    def words(self) -> list[tuple[str, str, str | None]]:
        return [(each.sample_id, each.value, each.comment) for each in self.said]


VALUES = [
    ("down", "thumbs_down"),
    (" Thumbs-Down ", "thumbs_down"),
    (False, "thumbs_down"),
    (-1, "thumbs_down"),
    ("up", "thumbs_up"),
    ("👍", "thumbs_up"),
    (True, "thumbs_up"),
    (1, "thumbs_up"),
    ("Too long", "Too long"),
]


@WHERE
def test_it_comes_to_every_sink_beside_the_outcomes(place: Any) -> None:
    sinks = [Said("a"), Said("b"), CallableSink(lambda _: None, name="deaf")]
    with live(sinks=sinks, **place) as monitor:
        submit(monitor, [1])
        for number, (value, _) in enumerate(VALUES):
            monitor.feedback(f"s{number}", value, comment="My name is Ann")
        assert monitor.flush(PATIENCE)
        for sink in sinks[:2]:
            assert sink.words == [(f"s{number}", word, None) for number, (_, word) in enumerate(VALUES)]
            assert sink.ids == {"s1"}
        assert all(stats.waiting == stats.failures == 0 for stats in monitor.stats().sinks.values())
        assert monitor.stats().errors == {}


@pytest.mark.parametrize(
    ("options", "comment"),
    [
        ({}, None),
        ({"store_text": True}, "I am Ann"),
        ({"store_text": True, "redact": lambda text: text.replace("Ann", "X")}, "I am X"),
        ({"store_text": True, "redact": lambda text: 1 / 0}, None),
    ],
    ids=["no_text", "text", "redacted", "redact_fails"],
)
def test_a_comment_is_a_text_like_all(options: Any, comment: str | None) -> None:
    sink = Said()
    with live(sinks=sink, **options) as monitor:
        monitor.feedback("s1", "down", comment="I am Ann")
    assert sink.words == [("s1", "thumbs_down", comment)]


def test_what_is_no_feedback_is_counted_and_the_app_sees_nothing() -> None:
    sink = Said()
    monitor = live(sinks=sink)
    wrong: list[Any] = [(7, "up"), (uuid4(), "up"), (None, "up"), ("s", None), ("s", 0), ("s", object()), ("s", [1])]
    for sample_id, value in wrong:
        monitor.feedback(sample_id, value)
    monitor.feedback("s", "up", comment=7)  # type: ignore[arg-type]
    monitor.close()
    monitor.feedback("s", "up")
    assert monitor.stats().errors == {"feedback": len(wrong) + 2}  # the comment, and after the end
    assert sink.words == []
    nameless = live(sinks=sink, keep=["tags"])
    nameless.feedback("s", "up")
    assert nameless.stats().errors == {"feedback": 1}
    nameless.close()


@WHERE
def test_a_sink_that_cannot_take_it_gets_it_again(place: Any) -> None:
    down = threading.Event()
    down.set()

    def trouble(_: object) -> None:
        if down.is_set():
            raise OSError("down")

    bad, good = Said("bad", trouble), Said("good")
    with live(sinks=[bad, good], **place) as monitor:
        monitor.feedback("s1", "up")
        soon(lambda: good.words and monitor.stats().sinks["bad"].failures)
        left = monitor.flush(0.0)
        assert (left.done, left.undelivered) == (False, 1)
        down.clear()
        assert monitor.flush(PATIENCE)
        assert bad.words == good.words == [("s1", "thumbs_up", None)]


def test_the_app_does_not_wait_for_the_outbox() -> None:
    sink = Said()
    with live(sinks=sink, outbox=OUTBOX) as monitor:
        assert monitor.flush(PATIENCE)
        with closing(sqlite3.connect(OUTBOX, isolation_level=None, timeout=PATIENCE)) as other:
            other.execute("BEGIN EXCLUSIVE")
            monitor.feedback("s1", "up")  # would never come back while it waited for the file
            other.execute("ROLLBACK")
        assert monitor.flush(PATIENCE)
    assert sink.words == [("s1", "thumbs_up", None)]


def test_it_survives_a_kill() -> None:
    code = "monitor = live(sinks=Down(RESULTS)); monitor.feedback('s1', 'up'); monitor.pause(); say('said'); hear()"
    with app(code) as process:
        assert process.hear() == "said"
        soon(lambda: rows(OUTBOX, "SELECT 1 FROM records"))
    assert rows(OUTBOX, "SELECT count(*) FROM records") == [(1,)]
    sink = Said("another")  # whatever sinks the process has that delivers it
    change(OUTBOX, "UPDATE records SET sink = ?", sink.name)
    with live(sinks=sink, outbox=OUTBOX) as monitor:
        assert monitor.flush(PATIENCE)
    assert sink.words == [("s1", "thumbs_up", None)]
    assert rows(OUTBOX, "SELECT * FROM records") == []


def test_what_a_process_wrote_that_delivers_nothing_goes_to_all_sinks_of_another() -> None:
    with live(sinks=Said("its own"), outbox=OUTBOX, workers=0) as writer:
        writer.feedback("s1", "up")
        assert writer.flush(PATIENCE)
    with closing(Outbox(writer.outbox)) as outbox, outbox.transaction():  # type: ignore[arg-type]
        outbox.say(Feedback(sample_id="s1", value="thumbs_down", comment="\ud83d", at=2.0))
        assert sum(outbox.contents().records.values()) == 2
    sinks = Said("a"), Said("b")
    with live(sinks=sinks, outbox=OUTBOX) as monitor:
        assert monitor.flush(PATIENCE)
    assert sinks[0].words == sinks[1].words
    assert [word for _, word, _ in sinks[0].words] == ["thumbs_up", "thumbs_down"]


# --- samples that sampling left out ---------------------------------------------------------------------------------


def kept() -> list[str]:
    return [name for (name,) in rows(OUTBOX, "SELECT id FROM samples WHERE kept IS NOT NULL ORDER BY not_before")]


def test_feedback_on_what_sampling_left_out_has_it_scored_by_all_metrics() -> None:
    sink = Said()
    metrics = [metric(), Second(llm=metric().judge)]
    options: dict[str, Any] = {"sample_rate": 0.0, "where": lambda each: each.id != "s2", "keep_unsampled": "7d"}
    with live(metrics, sink, outbox=OUTBOX, redact=lambda text: text.replace("question", "q"), **options) as monitor:
        submit(monitor, range(4))
        assert monitor.flush(PATIENCE)
        assert sink.ids == set()
        assert sorted(kept()) == ["s0", "s1", "s3"]
        assert rows(OUTBOX, "SELECT 1 FROM samples WHERE body LIKE '%question%'") == []
        assert monitor.stats().not_sampled == 8
        monitor.feedback("s1", "down")
        monitor.feedback("s2", "down")
        assert monitor.flush(PATIENCE)
        records = list(sink.records.values())
        assert [(each.sample_id, each.outcome.metric) for each in records] == [
            ("s1", "context_relevancy"),
            ("s1", "second"),
        ]
        assert {(each.chosen_by, each.rate) for each in records} == {("feedback", 1.0)}
        assert sorted(kept()) == ["s0", "s3"]
        assert adds_up(monitor.stats())
        assert monitor.stats().scored == 2


def test_what_is_to_be_kept_waits_while_the_outbox_cannot_be_written() -> None:
    Path(OUTBOX).write_text("something else, so that SQLite refuses it. " * 100)
    with live(sample_rate=0.0, outbox=OUTBOX, keep_unsampled="7d") as monitor:
        submit(monitor, range(3))
        soon(lambda: monitor.stats().errors.get("outbox"))
        Path(OUTBOX).unlink()
        assert monitor.flush(PATIENCE)
        assert sorted(kept()) == ["s0", "s1", "s2"]


def test_what_a_rate_or_a_rule_chose_stays_as_it_is() -> None:
    def feedback(each: Sample) -> bool:
        return each.id == "s2"

    sampling = Sampling([metric()], 0.0, None, ["thumbs_down", feedback], keep_unsampled=True)
    chosen = [sampling.choose(each, "x") for each in (sample(1, metadata={"feedback": "bad"}), sample(2), sample(3))]
    assert [[(choice.by, choice.rate) for choice in each] for each in chosen] == [
        [("thumbs_down", 1.0)],
        [("feedback()", 1.0)],
        [("feedback", 1.0)],
    ]
    assert Sampling([metric()], 1.0, keep_unsampled=True).choose(sample(1), "x")[0].by == "rate"


def test_the_oldest_are_removed_beyond_a_time_and_a_size() -> None:
    with live(sample_rate=0.0, outbox=OUTBOX, keep_unsampled="1h") as monitor:
        submit(monitor, range(10))
        assert monitor.flush(PATIENCE)
        soon(lambda: len(kept()) == 10)
        change(OUTBOX, "UPDATE samples SET not_before = not_before - 3700 WHERE id IN ('s0', 's4')")
        soon(lambda: len(kept()) == 8)
    ((size,),) = rows(OUTBOX, "SELECT max(kept) FROM samples")
    limit = {"keep_unsampled": "1h", "keep_unsampled_bytes": 5 * size}
    with live(sample_rate=0.0, outbox=OUTBOX, **limit) as monitor:
        soon(lambda: len(kept()) < 8)
        assert kept() == ["s6", "s7", "s8", "s9"]
        monitor.submit(sample(10))
        soon(lambda: kept() == ["s6", "s7", "s8", "s9", "s10"])


def test_nothing_is_kept_unless_asked_for_and_what_it_needs_is_said() -> None:
    with live(sample_rate=0.0, outbox=OUTBOX) as monitor:
        submit(monitor, [1])
        assert monitor.flush(PATIENCE)
    assert kept() == []
    for options, message in (
        ({"keep_unsampled": "7d"}, 'outbox="PATH"'),
        ({"keep_unsampled": "7d", "outbox": OUTBOX, "keep": ["tags"]}, "keep="),
        (
            {"keep_unsampled": "a week", "outbox": OUTBOX},
            "keep_unsampled: 'a week' is not a time; write 30m, 24h or 90d",
        ),
        ({"keep_unsampled": "0d", "outbox": OUTBOX}, "keep_unsampled: '0d' is not a time"),
        ({"retain": "tomorrow"}, "retain: 'tomorrow' is not a time"),
        ({"keep_unsampled_bytes": 0}, "keep_unsampled_bytes"),
    ):
        with pytest.raises(ValueError, match=message):
            live(**options)
    with pytest.raises(TypeError, match="retain: is int"):
        live(retain=90)


def test_a_kept_sample_is_no_work_that_waits() -> None:
    with live(metric(yes), sample_rate=0.0, outbox=OUTBOX, keep_unsampled="7d") as monitor:
        submit(monitor, [1])
        assert monitor.flush(PATIENCE)
    with closing(Outbox(monitor.outbox)) as outbox, outbox.transaction():  # type: ignore[arg-type]
        contents = outbox.contents()
    assert (contents.samples, contents.waiting(), contents.records) == (0, 0, {})
    ((body,),) = rows(OUTBOX, "SELECT body FROM samples")
    assert json.loads(body)["todo"][0][2:] == [1.0, "feedback"]
