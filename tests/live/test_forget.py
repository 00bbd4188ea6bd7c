"""What people say of answers, and forgetting: gone from every table and file; what is in hand does not come back."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ragstone import Sample
from ragstone.live import CallableSink, Feedback, SQLiteSink
from ragstone.live.database import DatabaseSink
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Choice, Pending

from ..support.command import command  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .cases import Case, Impatient, score
from .kit import PATIENCE, Held, Kept, live, metric, sample, submit
from .live_app import OUTBOX, RESULTS, app, change, rows

pytestmark = pytest.mark.usefixtures("own_folder")

SECRET = "It was Ann who asked"
LONG = SECRET * 1_000


def in_files(folder: Path, *texts: str) -> set[str]:
    """The files of a folder that hold one of the texts."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name for path in files if any(text.encode() in path.read_bytes() for text in texts)}


def said(sample_id: str, at: float = 1_000.0) -> Feedback:
    return Feedback(sample_id=sample_id, value="thumbs_down", comment=f"{SECRET}: {sample_id}", at=at)


def sink_of(store: Case) -> DatabaseSink:
    assert isinstance(store.sink, DatabaseSink)
    return store.sink


def left(store: Case) -> tuple[list[str], list[str]]:
    tables = ("outcomes", "feedback")
    return tuple(  # type: ignore[return-value]
        [name for (name,) in store.query(f"SELECT sample_id FROM {table} ORDER BY sample_id")] for table in tables
    )


def test_by_age_and_by_id(store: Case) -> None:
    sink = sink_of(store)
    sink.write([score("old", submitted_at=10.0), score("new"), score("x\x00y"), score("z" * 300)])
    sink.feedback([said("old", 11.0), said("old", 900.0), said("new"), said("nobody's")])
    assert sink.forget(before=500.0) == {"outcomes": 1, "feedback": 1}
    assert sink.forget(ids=["x\x00y", "z" * 300, "nobody's", "unknown"]) == {"outcomes": 2, "feedback": 1}
    assert left(store) == (["new"], ["new", "old"])
    assert sink.forget(before=500.0) == {"outcomes": 0, "feedback": 0}
    assert (sink.has("new"), sink.has("old")) == (True, False)


def test_by_user_also_where_only_the_sample_says_whose_it_is(store: Case) -> None:
    sink = sink_of(store)
    ann, bob = Sample(metadata={"user_id": "ann"}), Sample(metadata={"user_id": "bob", "about": '{"user_id": "ann"}'})
    sink.write(
        [
            score("a", user_id="ann"),
            score("b", sample=ann),
            score("c", user_id="bob", sample=ann),
            score("d", sample=bob),
            score("e"),
            score("7", sample=Sample(metadata={"user_id": 7, "half": "\ud83d\x00"})),
        ]
    )
    assert sink.samples_of("ann") == {"a", "b"}
    assert sink.samples_of("7") == {"7"}
    assert sink.samples_of("None") == sink.samples_of("") == set()


def test_what_was_on_its_way_does_not_come_back_but_what_comes_later_does(store: Case) -> None:
    sink = sink_of(store)
    before = time.time() - 5.0
    assert sink.forget(ids=["a", "é" * 300], user="ann\x00") == {"outcomes": 0, "feedback": 0}
    ann = Sample(metadata={"user_id": "ann\x00"})
    sink.write([score("ann's", submitted_at=before, user_id="ann\x00"), score("x", submitted_at=before, sample=ann)])
    sink.write(
        [score("a", submitted_at=before), score("é" * 300, submitted_at=before), score("b", submitted_at=before)]
    )
    sink.feedback([said("a", before), said("b", before)])
    assert left(store) == (["b"], ["b"])
    sink.write([score("c", submitted_at=before), score("a", submitted_at=time.time() + 5.0)])
    sink.feedback([said("c", before), said("a", time.time() + 5.0)])
    assert left(store) == (["a", "b", "c"], ["a", "b", "c"])
    sink.write([score("d", submitted_at=time.time() + 5.0, user_id="ann\x00")])
    assert left(store)[0][-1] == "d"
    assert "ann" not in str(store.query("SELECT name FROM forgotten"))


def test_a_note_of_a_clock_that_was_ahead_is_not_believed(store: Case) -> None:
    sink = sink_of(store)
    sink.forget(ids=["a"], user="ann")
    store.query(f"UPDATE forgotten SET at = {time.time() + 365 * 86_400}")
    sink.write([score("a", submitted_at=time.time()), score("b", submitted_at=time.time(), user_id="ann")])
    assert left(store)[0] == ["a", "b"]


def test_a_writer_on_a_server_that_has_looked_already_is_waited_for(store: Case) -> None:
    if store.kind != "postgres":
        pytest.skip("a SQLite file has one writer at a time")
    import psycopg

    sink, at = sink_of(store), time.time() - 5.0
    sink.write([score("b")])
    with psycopg.connect(store.source.replace("+psycopg", "")) as other:
        other.execute("SELECT 1 FROM forgotten")  # as `write` begins
        with ThreadPoolExecutor() as pool:
            forgetting = pool.submit(sink.forget, before=at)
            soon(lambda: store.query("SELECT 1 FROM pg_locks WHERE NOT granted"))
            other.execute("UPDATE outcomes SET sample_id = 'c'")
            other.commit()
            assert forgetting.result() == {"outcomes": 1, "feedback": 0}
    assert store.query("SELECT 1 FROM pg_stat_all_tables WHERE relname = 'outcomes' AND last_vacuum IS NOT NULL")


@pytest.mark.parametrize("again", [False, True], ids=["at_once", "scored_twice"])
def test_a_removed_text_is_in_no_file(tmp_path: Path, again: bool) -> None:
    first, second = SQLiteSink(tmp_path / "r.db"), SQLiteSink(tmp_path / "r.db")
    kept = Sample(response="It stays.", metadata={"user_id": "bob"})
    for sink in (first, second):  # both have it open
        sink.write([score("b", sample=kept, text="It stays."), score("c", sample=kept, text="It stays.")])
    first.write([score("a", text=LONG, sample=Sample(response=LONG), user_id="Ann Ananas")])
    first.feedback([said("a")])
    if again:
        with first.database.transaction() as connection:  # some builds of SQLite have it on from the start
            connection.execute("PRAGMA secure_delete = OFF")
        first.write([score("a", text="Short.")])  # the long one's room is free, and not written over
        assert first.forget(ids=["never was"])["outcomes"] == 0
    else:
        assert in_files(tmp_path, SECRET, "Ananas")
        assert first.forget(before=2_000.0, ids=["a"]) == {"outcomes": 3, "feedback": 1}
    assert in_files(tmp_path, LONG[:200]) == set()
    if not again:
        assert in_files(tmp_path, SECRET, "Ananas", "It stays.") == set()
    second.write([score("d")])
    for sink in (first, second):
        sink.close()


def test_while_it_is_read_it_is_said_and_the_next_try_does_it(tmp_path: Path) -> None:
    sink = Impatient(tmp_path / "r.db")
    sink.write([score("a", text=LONG)])
    with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM outcomes").fetchone()
        with pytest.raises(Exception, match=r"r\.db: is in use, and its log still holds removed texts; try again"):
            sink.forget(before=2_000.0)
        reader.execute("ROLLBACK")
        assert sink.forget(before=2_000.0) == {"outcomes": 0, "feedback": 0}
    assert in_files(tmp_path, SECRET) == set()
    sink.close()


def pending(name: str, user: str | None = None, at: float = 1_000.0) -> Pending:
    sample = Sample(id=name, response=f"{LONG} {name}", metadata={} if user is None else {"user_id": user})
    return Pending(sample, name, at, [Choice("m", "1", 1.0, "rate")])


@pytest.mark.parametrize(
    ("what", "removed"),
    [
        ({"user": "ann"}, {"samples": ["waits"], "records": ["scored"]}),
        ({"ids": ["waits", "nobody's"]}, {"samples": ["waits"], "records": ["nobody's"]}),
        ({"before": 500.0}, {"samples": ["old"], "records": []}),
        ({"before": 5_000.0}, {"samples": ["waits", "old"], "records": ["scored", "nobody's"]}),
    ],
    ids=["user", "id", "older", "all"],
)
def test_an_outbox(tmp_path: Path, what: dict[str, object], removed: dict[str, list[str]]) -> None:
    def names() -> list[str]:
        with closing(sqlite3.connect(tmp_path / "o.db")) as reader:
            return [name for (name,) in reader.execute("SELECT id FROM samples ORDER BY seq")]

    with closing(Outbox(tmp_path / "o.db")) as app, closing(Outbox(tmp_path / "o.db")) as outbox:
        with app.transaction():
            app.add(pending("waits", "ann"), mine=True)
            app.add(pending("old", at=10.0), mine=False)
            app.keep(score("scored", text=LONG, sample=pending("scored", "ann").sample), ["sink"])
            app.add_feedback(said("nobody's"))
        before = names()
        assert outbox.forget(**what) == removed  # type: ignore[arg-type]
        assert names() == [name for name in before if name not in removed["samples"]]
        gone = [*removed["samples"], *removed["records"]]
        assert (
            in_files(tmp_path, *(f"{LONG} {name}" for name in gone), *(f"{SECRET}: {name}" for name in gone)) == set()
        )
        with app.transaction():  # what the app has in hand of them
            assert [bool(app.keep(score(name), ["sink"])) for name in gone] == [False] * len(gone)
            for name in gone:
                app.put_off(pending(name), 0.0)
                assert not app.add(pending(name), mine=True)
            if "user" in what:  # one that was nowhere at that time
                assert not app.add(pending("late", "ann"), mine=True)
            assert app.keep(score("other"), ["sink"])
        assert not {*names()} & {*gone}
    assert [path.name for path in tmp_path.iterdir()] == ["o.db"]


# --- while monitors run


def outcomes() -> list[str]:
    return [name for (name,) in rows(RESULTS, "SELECT sample_id FROM outcomes ORDER BY sample_id")]


def judged(_: object) -> Any:
    return {"ids": [1]}


def fails(_: object) -> Any:
    raise ConnectionError("down")


@pytest.mark.parametrize("reply", [judged, fails], ids=["scored", "tried_again_later"])
@pytest.mark.parametrize("outbox", [OUTBOX, None], ids=["outbox", "memory"])
def test_what_a_judge_has_in_hand_does_not_come_back(reply: Any, outbox: str | None) -> None:
    held = Held(reply)
    seen = Kept()  # a sink that cannot forget
    with live(metric(held), [SQLiteSink(RESULTS), seen], outbox=outbox, store_text=True) as monitor:
        monitor.submit(sample(1, response=SECRET))
        soon(lambda: held.asked)
        with closing(SQLiteSink(RESULTS)) as sink:
            if outbox is not None:
                with closing(Outbox(monitor.outbox)) as opened:  # type: ignore[arg-type]
                    assert opened.forget(ids=["s1"]) == {"samples": ["s1"], "records": []}
            sink.forget(ids=["s1"])
        held.let_go()
        monitor.submit(sample(2))
        assert monitor.flush(PATIENCE) or reply is fails
        assert in_files(Path.cwd(), SECRET) == set()
        assert outcomes() == (["s2"] if reply is judged or outbox is None else [])
        assert outbox is None or "s1" not in seen.ids
        assert [name for (name,) in rows(OUTBOX, "SELECT id FROM samples")] == (
            ["s2"] if reply is fails and outbox else []
        )


@pytest.mark.parametrize("named", [["--outbox", OUTBOX], []], ids=["outbox", "memory"])
def test_a_users_samples_in_hand_do_not_come_back(named: list[str]) -> None:
    """The database has nothing of the user's yet, and so knows none of the ids."""
    held = Held(judged)
    outbox = OUTBOX if named else None
    with live(metric(held), SQLiteSink(RESULTS), outbox=outbox) as monitor:
        for i in range(20):
            monitor.submit(sample(i, metadata={"user_id": "Ann Ananas" if i % 2 else "Bob"}))
        soon(lambda: held.asked)
        with closing(SQLiteSink(RESULTS)) as sink:
            sink.forget(ids=["nobody's"])
        done = command("live", "forget", RESULTS, *named, "--user", "Ann Ananas")
        assert done.exit_code == 0, done.output
        held.let_go()
        monitor.submit(sample(21, metadata={"user_id": "Ann Ananas"}))
        assert monitor.flush(PATIENCE)
        (stats,) = monitor.stats().sinks.values()
        assert (stats.written, stats.forgotten) == (11, 10)
    assert outcomes() == sorted([*(f"s{i}" for i in range(0, 20, 2)), "s21"])


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
        outbox.add_feedback(Feedback(sample_id="s1", value="thumbs_down", comment="\ud83d", at=2.0))
        assert sum(outbox.contents().records.values()) == 2
    sinks = Said("a"), Said("b")
    with live(sinks=sinks, outbox=OUTBOX) as monitor:
        assert monitor.flush(PATIENCE)
    assert sinks[0].words == sinks[1].words
    assert [word for _, word, _ in sinks[0].words] == ["thumbs_up", "thumbs_down"]
