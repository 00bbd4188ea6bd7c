"""Traces that MLflow's autolog wrote of LangChain: `Trace.to_json`, its frame, and what `mlflow traces search` prints."""

import subprocess
import sys
import tempfile
from pathlib import Path

import mlflow
from tests.support.noting import Noting
from tests.traces.make.common import write
from tests.traces.make.langchain_apps import agent, rag

from ragstone_langchain import MonitorHandler

PACKAGES = ("mlflow", "langchain-core")


def searched(folder: str, experiment: str) -> str:
    command = [str(Path(sys.executable).with_name("mlflow")), "traces", "search", "--output", "json"]
    environment = {"MLFLOW_TRACKING_URI": folder}
    return subprocess.run(
        [*command, "-x", experiment], env=environment, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    noting = Noting()
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        experiment = mlflow.set_experiment("velin").experiment_id
        mlflow.langchain.autolog()
        rag({"callbacks": [MonitorHandler(noting)]})
        mlflow.flush_trace_async_logging()
        frame = mlflow.search_traces(return_type="pandas")
        write("mlflow-frame.jsonl", frame.to_json(orient="records", lines=True), noting, PACKAGES)
        write("mlflow-search.json", searched(f"sqlite:///{folder}/mlflow.db", experiment), noting, PACKAGES)
        agent({"callbacks": [MonitorHandler(noting)]})
        mlflow.flush_trace_async_logging()
        traces = mlflow.search_traces(return_type="list")
        write("mlflow-traces.jsonl", "\n".join(each.to_json() for each in reversed(traces)), noting, PACKAGES)
