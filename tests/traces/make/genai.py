"""Traces with OpenTelemetry's conventions for generative models: an app on OpenAI's client, whose tool searches.

The client asks a server on loopback. No live handler follows such an app, so what it asked, found and answered is
written down here.
"""

import io
import json
import os

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only"

from openai import OpenAI
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.genai.handler import TelemetryHandler
from opentelemetry.util.genai.types import InputMessage, OutputMessage, Text
from tests.support.noting import Noting
from tests.support.openai_server import OpenAIServer, chat
from tests.traces.make.common import ELECTRIC, PASSAGES, WHO_LIT, write

from ragstone import Sample

PACKAGES = ("opentelemetry-instrumentation-openai-v2", "opentelemetry-util-genai", "openai")
FOUND = [PASSAGES[1], PASSAGES[5]]
CALL = {"id": "call_1", "type": "function", "function": {"name": "search_velin", "arguments": '{"query": "lamp"}'}}


def ask(client: OpenAI, telemetry: TelemetryHandler) -> None:
    messages = [{"role": "user", "content": WHO_LIT}]
    with telemetry.workflow("velin") as workflow:
        workflow.input_messages = [InputMessage("user", [Text(WHO_LIT)])]
        client.chat.completions.create(model="m", messages=messages)
        with telemetry.tool("search_velin", tool_type="function") as tool:
            tool.arguments = {"query": "lamp"}
            tool.tool_result = FOUND
        messages += [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
        messages += [{"role": "tool", "tool_call_id": "call_1", "content": json.dumps(FOUND)}]
        said = client.chat.completions.create(model="m", messages=messages).choices[0].message.content
        workflow.output_messages = [OutputMessage("assistant", [Text(said)], "stop")]


if __name__ == "__main__":
    stream, noting = io.StringIO(), Noting()
    provider = TracerProvider(resource=Resource.create({"service.name": "velin"}))
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(stream=stream)))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    answers = iter([chat(None, tool_calls=[CALL]), chat(ELECTRIC)])
    with OpenAIServer(lambda _: next(answers)) as server:
        ask(OpenAI(base_url=server.url, api_key="none"), TelemetryHandler(tracer_provider=provider))
    provider.force_flush()
    noting.submit(Sample(user_input=WHO_LIT, retrieved_contexts=FOUND, response=ELECTRIC))
    write("genai-openai-tool.jsonl", stream.getvalue(), noting, PACKAGES)
