# ruff: noqa: S608 - nothing from outside is in this SQL
"""Write the Grafana boards: `python board.py` makes postgresql.json and sqlite.json beside this file."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PLUGINS = {"postgresql": "grafana-postgresql-datasource", "sqlite": "frser-sqlite-datasource"}
AS_JSON = {"postgresql": "CAST({} AS json)", "sqlite": "{}"}  # SQLite reads JSON out of text
AS_TIME = {"postgresql": "TO_TIMESTAMP({})", "sqlite": "CAST({} AS BIGINT)"}  # and its plugin takes seconds

# Grafana replaces $__from and $__to (milliseconds) and $bucket (seconds) before a database sees them.
SHOWN = "{at} >= $__from / 1000.0 AND {at} < $__to / 1000.0"
TIME = "CAST(ROUND({at} / $bucket - 0.4999999) AS BIGINT) * $bucket AS time"  # rounded down, in either dialect
MEAN = "SUM(value / rate) / SUM(1 / rate)"  # of all traffic: each score weighs 1 / the chance that it was chosen
SCORED = "status = 'scored'"
LATEST = "f.at = (SELECT MAX(later.at) FROM feedback later WHERE later.sample_id = f.sample_id)"


def submitted(text: str) -> str:
    """Return a clause with the times of submission."""
    return text.format(at="submitted_at")


def panels(dialect: str) -> list[tuple[str, str, str]]:
    """Return the title, kind and SQL of each panel."""
    counts = AS_JSON[dialect].format("counts")
    shown, time, costs = submitted(SHOWN), submitted(TIME), TIME.format(at="scored_at")
    queue = ("accepted", "scored", "unscored", "pending", "spooled", "dropped", "over_budget")
    columns = ", ".join(f"CAST({counts} ->> '{name}' AS BIGINT) AS {name}" for name in queue)
    run = "run_name, user_id, thread_id, run_id"
    return [
        (
            "Mean score by metric",
            "timeseries",
            f"SELECT {time}, metric, {MEAN} AS mean FROM outcomes WHERE {SCORED} AND {shown} GROUP BY 1, 2 ORDER BY 1",
        ),
        (
            "Mean score, by version, judge and set-up",
            "table",
            f"SELECT metric, version, judge, setup, COUNT(*) AS scored, {MEAN} AS mean FROM outcomes "
            f"WHERE {SCORED} AND {shown} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
        ),
        (
            "Unscored, by reason",
            "timeseries",
            f"SELECT {time}, reason AS metric, COUNT(*) AS outcomes FROM outcomes "
            f"WHERE status = 'unscored' AND {shown} GROUP BY 1, 2 ORDER BY 1",
        ),
        (
            "Judge calls and tokens",
            "timeseries",
            f"SELECT {costs}, SUM(llm_calls) AS judge_calls, SUM(input_tokens) AS tokens_in, "
            f"SUM(output_tokens) AS tokens_out FROM outcomes WHERE {SHOWN.format(at='scored_at')} "
            "GROUP BY 1 ORDER BY 1",
        ),
        (
            "Lowest scores",
            "table",
            f"SELECT value, metric, sample_id, {AS_TIME[dialect].format('submitted_at')} AS time, {run}, reason "
            f"FROM outcomes WHERE status = 'scored' AND {shown} ORDER BY value, sample_id, metric LIMIT 20",
        ),
        (
            "Scores by feedback (who gives it chooses to)",
            "table",
            f"SELECT f.value AS feedback, metric, COUNT(*) AS scored, {MEAN.replace('value', 'o.value')} AS mean "
            f"FROM outcomes o JOIN feedback f ON f.sample_id = o.sample_id AND {LATEST} "
            f"WHERE {SCORED} AND {shown} GROUP BY 1, 2 ORDER BY 1, 2",
        ),
        (
            "Queue, by process",
            "table",
            f"SELECT process, {AS_TIME[dialect].format('at')} AS time, longest_queue, {columns} "
            "FROM health ORDER BY at DESC, process LIMIT 50",
        ),
    ]


def board(dialect: str) -> dict[str, Any]:
    """Return the board of a database."""
    source = {"type": PLUGINS[dialect], "uid": "${database}"}
    shown: list[dict[str, Any]] = []
    for i, (title, kind, sql) in enumerate(panels(dialect)):
        series = kind == "timeseries"
        form: dict[str, Any] = {
            "format": "time_series" if series else "table",
            "rawQuery": True,
            "rawSql": sql,
            "editorMode": "code",
        }
        if dialect == "sqlite":
            form = {"queryType": "time series" if series else "table", "queryText": sql, "rawQueryText": sql}
            form["timeColumns"] = ["time"]
        shown.append(
            {
                "id": i + 1,
                "type": kind,
                "title": title,
                "datasource": source,
                "gridPos": {"h": 9, "w": 12, "x": 12 * (i % 2), "y": 9 * (i // 2)},
                "targets": [{"refId": "A", "datasource": source, **form}],
                "fieldConfig": {"defaults": {"custom": {}}, "overrides": []},
                "options": {},
            }
        )
    variables = [
        {"name": "database", "type": "datasource", "query": PLUGINS[dialect], "label": "Database"},
        {
            "name": "bucket",
            "type": "custom",
            "label": "Seconds a point",
            "query": "3600,60,86400,604800",
            "current": {"text": "3600", "value": "3600"},
        },
    ]
    return {
        "title": "ragstone",
        "uid": f"ragstone-{dialect}",
        "schemaVersion": 39,
        "timezone": "utc",
        "time": {"from": "now-7d", "to": "now"},
        "refresh": "1m",
        "tags": ["ragstone"],
        "templating": {"list": variables},
        "panels": shown,
    }


if __name__ == "__main__":
    for each in PLUGINS:
        (FOLDER / f"{each}.json").write_text(json.dumps(board(each), indent=2) + "\n", encoding="utf-8")
