"""Runs of LangSmith: as its client lists them, one a line, and as its collector has them, with runs inside.

No server of LangSmith is needed: what the client sends comes to one on loopback, which gives it back.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

from langchain_core.tracers import LangChainTracer
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith import Client
from tests.support.noting import Noting
from tests.traces.make.common import write
from tests.traces.make.langchain_apps import agent, rag

from ragstone_langchain import MonitorHandler

PACKAGES = ("langsmith", "langchain-core")
PROJECT = UUID("6f1d3c0a-8d0f-4b7e-9a35-0c6c3f2d9a11")


class Server(ThreadingHTTPServer):
    """Keeps the runs that are sent to it, by their id."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/query"):
            return self.answer({"runs": list(self.server.runs.values()), "cursors": {"next": None}})
        sent.pop("attachments", None)
        # What machine it was.
        sent["extra"] = {}
        self.server.runs[sent["id"]] = {**sent, "session_id": str(PROJECT), "status": "pending", "child_runs": None}
        return self.answer({})

    def do_PATCH(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        run = self.server.runs[self.path.rpartition("/")[2]]
        run |= {key: value for key, value in sent.items() if value is not None and key not in ("attachments", "extra")}
        run["status"] = "error" if run.get("error") else "success"
        self.answer({})

    def do_GET(self) -> None:
        self.answer({})

    def answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def listed(*apps: Any) -> tuple[str, Noting]:
    noting = Noting()
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_port}", api_key="none", auto_batch_tracing=False)
        for app in apps:
            tracer = LangChainTracer(client=client)
            app({"callbacks": [MonitorHandler(noting), tracer]})
            tracer.wait_for_futures()
        runs = list(client.list_runs(project_id=PROJECT))
        server.shutdown()
    return "\n".join(run.model_dump_json(exclude_none=True) for run in runs), noting


def nested(run: Any) -> dict[str, Any]:
    """A run with the runs inside it; the client leaves them out of its own form."""
    return {**run.model_dump(mode="json", exclude_none=True), "child_runs": list(map(nested, run.child_runs))}


def collected(app: Any) -> tuple[str, Noting]:
    collector, noting = RunCollectorCallbackHandler(), Noting()
    app({"callbacks": [MonitorHandler(noting), collector]})
    return json.dumps([nested(run) for run in collector.traced_runs]), noting


if __name__ == "__main__":
    write("langsmith-list_runs.jsonl", *listed(rag, agent), PACKAGES)
    write("langsmith-collected.json", *collected(agent), PACKAGES)
