"""`ragstone live stats` and `ragstone live report`: what is printed of a database and an outbox."""

import json
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragstone import Sample
from ragstone.live import Health, SQLiteSink, SQLSink
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Choice, Pending
from ragstone.results.record import Watched

from ..report.reports import data_of  # noqa: TID252
from ..support.command import command  # noqa: TID252
from ..support.postgres import PASSWORD, PostgresServer  # noqa: TID252
from .cases import Case, make_case, score, unscored
from .live_app import OUTBOX, RESULTS, change

pytestmark = pytest.mark.usefixtures("own_folder")
NOON = 1_790_000_000 // 86_400 * 86_400 + 43_200.0
LOW = Watched(0.8, 0.0, 1.0)


READ: dict[str, Any] = {
    "skipped": {"no_answer": 2}, "missing": {"retrieved_contexts": 3},
    "names": {"retrieved_contexts": {"citations, question": 2, "question": 1}, "response": {"": 2}},
    "read_from": {"response": {"answer": 3}},
}  # fmt: skip
run = partial(command, "live")


def fill(case: Case) -> None:
    sink = case.sink
    sink.write([score(f"s{i:02}", 0.0, watched=LOW, run_name="shop-bot") for i in range(20)])
    sink.write([unscored("u1"), unscored("u2"), score("fine", 1.0)])
    counts = {"accepted": 40, "scored": 21, "unscored": 2, "dropped": 5, "not_sampled": 4, "pending": 3, "spooled": 1}
    reasons = {"dropped": {"queue_full": 5}, "not_sampled": {"not_chosen": 4}, "spooled": {"outbox": 1}}
    for i in range(2):
        at = NOON + 60 * i
        sink.health(
            Health(process=f"p{i}", at=at, started_at=NOON, counts=counts, reasons=reasons, longest_queue=7 * i, **READ)
        )


def leave_in_outbox() -> None:
    with closing(Outbox(Path(OUTBOX).absolute())) as outbox, outbox.transaction():
        for i in range(3):
            choices = [Choice("demo", "1", 1.0, "rate"), Choice("other", "1", 1.0, "rate")]
            outbox.add(Pending(Sample(id=f"w{i}"), f"w{i}", NOON + i, choices), mine=False)
        outbox.keep(score("waits"), ["sqlite:gone.db"])


def test_stats_of_a_database(store: Case) -> None:
    fill(store)
    done = run("stats", store.source, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["scored"], said["unscored"], said["waiting"], said["oldest"]) == (21, {"timeout": 2}, 8, None)
    assert said["not_judged"] == {"dropped": {"queue_full": 10}, "not_sampled": {"not_chosen": 8}}
    assert said["undelivered"] == {}
    assert (said["skipped"], said["missing"]) == ({"no_answer": 4}, {"retrieved_contexts": 6})
    assert said["names"]["retrieved_contexts"] == {"citations, question": 4, "question": 2}
    assert said["read_from"] == {"response": {"answer": 6}}
    printed = " ".join(run("stats", store.source).stdout.split())
    for words in (
        "runs without a sample: no_answer 4", "samples without: retrieved_contexts 6",
        "4 without retrieved_contexts had: citations, question. If one holds it: fields=",
        "Where fields came from: response <- answer (6).",
    ):  # fmt: skip
        assert words in printed
    assert "without response had" not in printed
    assert (said["processes"], said["seen"], said["longest_queue"], said["unaccounted"]) == (2, NOON + 60, 7, 8)
    (alarm,) = said["alarms"]
    assert (alarm["metric"], alarm["below"], alarm["lowest"][0]["value"]) == ("demo", 0.8, 0.0)


def test_what_waits_in_an_outbox_is_counted_there() -> None:
    with closing(SQLiteSink(RESULTS)) as sink:
        sink.write([score()])
    leave_in_outbox()
    said = json.loads(run("stats", RESULTS, "--outbox", OUTBOX, "--json").stdout)
    assert (said["waiting"], said["oldest"], said["undelivered"]) == (3, NOON, {"sqlite:gone.db": 1})
    printed = run("stats", RESULTS, "--outbox", OUTBOX).stdout
    assert printed.splitlines() == [
        f"Live traffic: sqlite:{Path(RESULTS).absolute()}",
        "what                         n",
        "scored                       1",
        "waiting                      3",
        "undelivered: sqlite:gone.db  1",
        "The oldest sample waits since 2026-09-21 12:00 UTC.",
    ]


def test_a_report_has_them_in_front_and_the_core_s_report_has_not(store: Case, tmp_path: Path) -> None:
    fill(store)
    done = run("report", store.source, "--out", str(tmp_path / "live.html"))
    assert (done.exit_code, done.output) == (0, f"{tmp_path / 'live.html'}: 23 outcomes\n")
    assert command("report", store.source, "--out", tmp_path / "plain.html").exit_code == 0
    live, plain = ((tmp_path / f"{name}.html").read_text() for name in ("live", "plain"))
    for words in ("Live traffic", "demo below 0.8: mean 0.000", "dropped: queue_full", "Where fields came from"):
        assert words in live
        assert words not in plain
    assert "21/23" in live
    assert "21/23" in plain
    shown = data_of(live)
    assert shown["title"] == "shop-bot"
    assert shown["conclusion"] == "demo 0.000, below 0.8, since 1970-01-01 00:16 UTC"
    assert len(shown["also"][0]["alarms"]) == 1


def test_a_role_that_may_only_read_reads_and_is_told_what_is_not_counted(
    postgres: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    reader, schema = f"reader{postgres.port}", postgres_url.rpartition("%3D")[2]
    url = postgres_url.replace("ragstone:", f"{reader}:")
    with closing(SQLSink(postgres_url)):
        fill(make_case("postgres", tmp_path, postgres_url))
        import psycopg

        with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {reader} LOGIN PASSWORD '{PASSWORD}'")
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {reader}")
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader}")
        said = [run("stats", url), run("alarms", url), run("report", url, "--out", str(tmp_path / "page.html"))]
        assert [each.exit_code for each in said] == [0, 0, 0], [each.output for each in said]
        for text in (said[0].stdout, said[1].stderr, (tmp_path / "page.html").read_text()):
            assert "Not counted since 1970-01-01 00:16 UTC" in text
            assert "permission denied" in text
        assert json.loads(run("stats", url, "--json").stdout)["scored"] == 21
        assert run("alarms", url, "--reset").exit_code == 2
        assert run("alarms", postgres_url).exit_code == 1
        counted = run("alarms", url)
        assert (counted.exit_code, counted.stderr) == (1, "")
        assert run("stats", url).stdout.count("Alarm of") == 1


def test_counters_that_a_hand_has_changed_are_left_out() -> None:
    with closing(SQLiteSink(RESULTS)) as sink:
        sink.health(Health(process="p", at=NOON, started_at=NOON, counts={"accepted": 1}))
    change(RESULTS, "UPDATE health SET counts = '[', reasons = '{\"dropped\": 5}', longest_queue = 'x'")
    assert json.loads(run("stats", RESULTS, "--json").stdout)["processes"] == 0


def test_what_is_not_there_is_said() -> None:
    assert (run("stats", "none.db").exit_code, run("report", "none.db").exit_code) == (2, 2)
    with closing(SQLiteSink(RESULTS)) as sink:
        sink.write([score()])
    done = run("report", RESULTS, "--since", "yesterday")
    assert (done.exit_code, "--since" in done.output) == (2, True)
    assert run("report", RESULTS, "--out", RESULTS).exit_code == 2
