"""What people say of answers afterwards: kept beside the outcomes."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from ragstone.live import CallableSink, Feedback
from ragstone.live.outbox import Outbox

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Kept, live, submit
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
