"""The Grafana boards of examples/live/grafana: every panel's SQL on real databases that the sinks wrote."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragstone.live import Feedback, Health
from ragstone.live.trace import facts_of
from ragstone.report import Report

from .cases import Case, score, unscored

FOLDER = Path(__file__).parents[2] / "examples" / "live" / "grafana"
NOON = 1_790_000_000 // 86_400 * 86_400 + 43_200
SET = {"$__from": str((NOON - 86_400) * 1000), "$__to": str((NOON + 86_400) * 1000), "$bucket": "3600"}

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the checkout: examples/")


def board(dialect: str) -> Any:
    return json.loads((FOLDER / f"{dialect}.json").read_text(encoding="utf-8"))


@pytest.fixture(params=[("sqlite", "sqlite"), ("postgres", "postgresql")], ids=["sqlite", "postgresql"])
def rows(request: pytest.FixtureRequest, make: Callable[[str], Case]) -> Callable[[str], list[tuple[Any, ...]]]:
    """Gives the rows of the panel whose title begins so."""
    kind, dialect = request.param
    case = make(kind)
    at = {"submitted_at": NOON + 1.0, "scored_at": NOON + 3599.0, "user_id": "u1"}
    given = [
        score("a", 0.25, rate=0.25, **at),
        score("b", 0.75, **at),
        score("c", 1.0, **{**at, "submitted_at": NOON + 3600.5}),
        unscored("d", **at),
        score("old", 0.0, **{**at, "submitted_at": NOON - 90_000.0, "scored_at": NOON - 90_000.0}),
    ]
    case.sink.write(given)
    case.sink.feedback(
        [Feedback(sample_id=name, value=value, at=NOON + i) for i, (name, value) in enumerate(
            [("a", "thumbs_up"), ("a", "thumbs_down"), ("b", "thumbs_up")]
        )]
    )  # fmt: skip
    case.sink.health(
        Health(process="web", at=NOON, started_at=NOON, counts={"accepted": 9, "pending": 2}, longest_queue=7)
    )
    assert Report.load(case.source).aggregates().cost.outcomes == len(given)

    def run(title: str) -> list[tuple[Any, ...]]:
        (panel,) = [each for each in board(dialect)["panels"] if each["title"].startswith(title)]
        sql = panel["targets"][0]["queryText" if dialect == "sqlite" else "rawSql"]
        for name, value in SET.items():
            sql = sql.replace(name, value)
        return [tuple(row) for row in case.query(sql)]

    return run


def test_every_panel(rows: Callable[[str], list[tuple[Any, ...]]]) -> None:
    weighted = (4 * 0.25 + 0.75) / 5
    assert rows("Mean score by metric") == [(NOON, "demo", pytest.approx(weighted)), (NOON + 3600, "demo", 1.0)]
    assert rows("Mean score, by") == [("demo", "1", "judge-1", "", 3, pytest.approx((4 * 0.25 + 0.75 + 1) / 6))]
    assert rows("Unscored") == [(NOON, "timeout", 1)]
    assert [tuple(map(int, row[:3])) for row in rows("Judge calls")] == [(NOON, 6, 270)]
    lowest = rows("Lowest")
    assert [(row[0], row[2], row[5]) for row in lowest] == [
        (0.25, "a", "u1"), (0.75, "b", "u1"), (1.0, "c", "u1"),
    ]  # fmt: skip
    assert rows("Scores by feedback") == [("thumbs_down", "demo", 1, 0.25), ("thumbs_up", "demo", 1, 0.75)]
    ((process, _, longest, accepted, *others),) = rows("Queue")
    assert (process, longest, accepted, others) == ("web", 7, 9, [None, None, 2, None, None, None])


def test_the_panel_on_the_page(make: Callable[[str], Case]) -> None:
    page = (FOLDER.parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    case = make("postgres")
    case.sink.write([score("a", 0.25, rate=0.25, submitted_at=NOON), score("b", 0.75, submitted_at=NOON)])
    ((_, metric, mean),) = case.query(page.split("```sql\n")[1].split("```")[0])
    assert (metric, mean) == ("demo", pytest.approx((4 * 0.25 + 0.75) / 5))


def test_the_means_of_tenants(store: Case) -> None:
    page = (FOLDER.parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    tenants = facts_of({"tags": {"tenant": "acme"}}, ["tags"]), facts_of({"tags": {"tenant": "zoo"}}, ["tags"])
    given = [("a", 1.0, 0.25, 0), ("b", 0.0, 1.0, 0), ("c", 0.5, 1.0, 1)]
    store.sink.write([score(name, value, rate=rate, **tenants[i]) for name, value, rate, i in given])
    store.sink.write([unscored("d", **tenants[1])])
    assert store.query(page.split("```sql\n")[2].split("```")[0]) == [
        ('["tenant=zoo"]', "demo", 0.5, 1),
        ('["tenant=acme"]', "demo", 0.8, 2),
    ]


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_boards_are_what_the_script_writes(dialect: str) -> None:
    spec = importlib.util.spec_from_file_location("board", FOLDER / "board.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert board(dialect) == script.board(dialect)
    ids = [panel["id"] for panel in board(dialect)["panels"]]
    assert len(ids) == len(set(ids)) == 7
    names = {each["name"] for each in board(dialect)["templating"]["list"]}
    assert names == {"database", "bucket"}
