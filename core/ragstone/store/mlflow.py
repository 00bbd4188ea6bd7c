"""Outcomes as feedback on the traces of the app's MLflow."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ragstone.outcome import Score
from ragstone.store.base import Sink

if TYPE_CHECKING:
    from ragstone.store.record import Record


class MLflowSink(Sink):
    """Logs each outcome with `mlflow.log_feedback` on the MLflow trace that was active when its sample was submitted.

    Without one it is the trace whose id ("tr-...") is the sample's, or that of OpenTelemetry's span, which an
    `OpenTelemetrySink` beside this one notes. Records without any are passed over. A later outcome of the same sample,
    metric and version replaces an earlier one.

    Raises:
        ImportError: MLflow is not installed.
    """

    name = "mlflow"

    def __init__(self) -> None:
        if find_spec("mlflow") is None:
            raise ImportError("MLflowSink needs MLflow 3: pip install mlflow-tracing", name="mlflow")

    def origin(self) -> Mapping[str, str] | None:
        """Return the id of the active trace; None where there is none."""
        active = import_module("mlflow").get_active_trace_id() if "mlflow" in sys.modules else None
        return {"mlflow_trace_id": active} if active else None

    def write(self, records: "Sequence[Record]") -> None:
        """Log each outcome. It raises what MLflow raises, and LookupError where the trace is not there (yet)."""
        mlflow, entities = import_module("mlflow"), import_module("mlflow.entities")
        for record in records:
            outcome, own = record.outcome, record.sample_id
            noted = record.origin.get("mlflow_trace_id") or (own if own.startswith("tr-") else None)
            if (trace_id := noted or f"tr-{record.origin.get('trace_id', '')}") == "tr-":
                continue
            if (trace := mlflow.get_trace(trace_id)) is None:
                raise LookupError(f"MLflow has no trace {trace_id}")
            about: dict[str, Any] = {"name": outcome.metric, "rationale": outcome.reason or None}
            if isinstance(outcome, Score):
                about["value"] = outcome.value
            else:
                about["error"] = entities.AssessmentError(outcome.reason, outcome.detail)
            mark = {"ragstone.sample.id": own, "ragstone.version": outcome.version}
            source = entities.AssessmentSource(source_type="LLM_JUDGE", source_id=record.judge or "unknown")
            mlflow.log_feedback(trace_id=trace_id, source=source, metadata=mark, **about)
            for old in trace.info.assessments:
                if old.name == outcome.metric and mark.items() <= (old.metadata or {}).items():
                    mlflow.delete_assessment(trace_id, old.assessment_id)
