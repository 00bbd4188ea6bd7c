"""Forgetting while monitors run: what they have in hand does not come back, and what is retained has an end."""

import re
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragstone import Sample, Score
from ragstone.cli.main import cli
from ragstone.live import Record, SQLiteSink
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Choice, Pending

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, live, metric, sample
from .live_app import OUTBOX, RESULTS, app, rows

pytestmark = pytest.mark.usefixtures("own_folder")
SECRET = "It was Ann who asked"


def outcomes() -> list[str]:
    return [name for (name,) in rows(RESULTS, "SELECT sample_id FROM outcomes ORDER BY sample_id")]


def in_files(*texts: str) -> list[str]:
    files = [path for path in Path.cwd().rglob("*") if path.is_file()]
    return [path.name for path in files if any(text.encode() in path.read_bytes() for text in texts or [SECRET])]


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
        assert in_files() == []
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
        done = CliRunner().invoke(cli, ["live", "forget", RESULTS, *named, "--user", "Ann Ananas"])
        assert done.exit_code == 0, done.output
        held.let_go()
        monitor.submit(sample(21, metadata={"user_id": "Ann Ananas"}))
        assert monitor.flush(PATIENCE)
    assert outcomes() == sorted([*(f"s{i}" for i in range(0, 20, 2)), "s21"])


def test_another_process_has_the_files_open_and_goes_on() -> None:
    code = f"""
monitor = live(reply=lambda request: {{"ids": [1]}} if asked(request) % 2 else 1 / 0, store_text=True)
for i in range(20):
    monitor.submit(sample(i, response="{SECRET}", metadata={{"user_id": "Ann Ananas"}}))
monitor.flush()
say("there")
hear()
monitor.submit(sample(20, response="It stays."))
monitor.close()
say(len(monitor.stats().errors))
"""
    with app(code) as process:
        assert process.hear() == "there"
        soon(lambda: len(rows(OUTBOX, "SELECT 1 FROM samples")) + len(outcomes()) == 20)
        assert len(in_files()) >= 2
        command = ["live", "forget", RESULTS, "--outbox", OUTBOX, "--user", "Ann Ananas"]
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, done.output
        counts = [int(n) for n in re.findall(r"removed (\d+)", done.output)]
        assert sum(counts) == 20
        assert all(counts)
        assert in_files(SECRET, "Ananas") == []
        process.say()
        assert process.hear() == "0"
    assert in_files(SECRET, "Ananas") == []
    assert outcomes() in ([], ["s20"])


class Forgets(Kept):
    """Notes what it is told to forget, and then cannot."""

    def __init__(self) -> None:
        super().__init__("forgets")
        self.before: list[float] = []
        self.thread = ""

    def forget(self, *, before: float | None = None) -> Mapping[str, int]:
        assert before is not None
        self.thread = threading.current_thread().name
        self.before.append(before)
        raise OSError("cannot")


def test_what_is_older_than_is_retained_goes() -> None:
    now, day = time.time(), 86_400.0
    with closing(SQLiteSink(RESULTS)) as sink:
        done = Score(metric="m", value=1.0, reason=SECRET, version="1")
        sink.write([Record(f"{age}", done, submitted_at=now - age * day) for age in (89, 91)])
    with closing(Outbox(Path(OUTBOX).absolute())) as outbox, outbox.transaction():
        for age in (89, 91):
            old = Sample(id=f"{age}", response=SECRET if age == 91 else None)
            outbox.add(Pending(old, f"{age}", now - age * day, [Choice("another's", "1", 1.0, "rate")]), mine=False)
    forgets = Forgets()
    with live(sinks=[forgets, SQLiteSink(RESULTS)], outbox=OUTBOX, retain="90d") as monitor:
        soon(lambda: outcomes() == ["89"] and rows(OUTBOX, "SELECT id FROM samples") == [("89",)])
        monitor.submit(sample(1))
        assert monitor.flush(PATIENCE) or True  # one waits for another's metric
        assert monitor.stats().errors == {"retain in forgets": 1}, "once a day"
    assert forgets.thread == "ragstone-monitor"
    assert forgets.before == [pytest.approx(now - 90 * day, abs=PATIENCE)]
    assert outcomes() == ["89", "s1"]
    assert rows(RESULTS, "SELECT reason FROM outcomes WHERE sample_id = '91'") == []
