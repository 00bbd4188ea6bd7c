"""A text from outside never begins a log line of its own, nor does a terminal obey it, whichever way it comes."""

import logging
import tempfile
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableLambda

from ragstone import ContextRelevancy, Monitor, Sample, evaluate
from ragstone.clients import OpenAICompatible
from ragstone.live import Alert, CallableSink, Sampling, SQLiteSink
from ragstone.testing import FakeLLM
from ragstone_langchain import MonitorHandler

from ..support.openai_server import error  # noqa: TID252

HOSTILE = "boom\nFORGED root logged in\r\x1b[2J\x1b]0;t\x07\x9b1A\u2028\u2029\x85\u202eevil"


class HostileError(RuntimeError):
    pass


class RefusedError(HostileError):
    status_code = 401


def fails(*_):
    raise HostileError(HOSTILE)


def refuses(*_):
    raise RefusedError(HOSTILE)


def live(judge=lambda _: {"ids": [1]}, samples=1, **settings):
    options = {"sinks": CallableSink(lambda _: None), **settings}
    monitor = Monitor(ContextRelevancy(llm=FakeLLM(judge)), **options)
    for number in range(samples):
        monitor.submit(
            Sample(id=f"{HOSTILE}{number}", user_input="q", retrieved_contexts=["a."], metadata={"k": HOSTILE})
        )
    monitor.submit({"user_input": 5, HOSTILE: HOSTILE})
    monitor.feedback(HOSTILE, HOSTILE * 20)
    monitor.flush(20 if "alerts" in settings else 0.5)
    monitor.close(0.1)


def batch(judge, rows=120):
    rows = [{"user_input": "q", "retrieved_contexts": ["a."]}] * rows
    evaluate(rows, [ContextRelevancy(llm=FakeLLM(judge))], progress=False)


def chain():
    monitor = Monitor(ContextRelevancy(llm=FakeLLM(fails)), sinks=CallableSink(fails))
    named = RunnableLambda(fails).with_config(run_name=HOSTILE)
    with pytest.raises(HostileError):
        named.invoke(HOSTILE, config={"callbacks": [MonitorHandler(monitor)], "tags": [HOSTILE]})
    monitor.close(0.5)


def alarm():
    alert = Alert("context_relevancy", below=0.9)
    with tempfile.TemporaryDirectory() as folder:
        sink = SQLiteSink(Path(folder, "results.db"))
        live(lambda _: {"ids": []}, samples=200, sinks=sink, alerts=alert, on_alarm=fails)


ROUTES = {
    "sink": lambda: live(sinks=CallableSink(fails)),
    "where": lambda: live(sampling=Sampling(where=fails)),
    "redact": lambda: live(redact=fails),
    "judge, live": lambda: live(fails),
    "judge, batch": lambda: batch(fails),
    "refused, batch": lambda: batch(refuses),
    "alarm": alarm,
    "langchain": chain,
}


def obeyed(line):
    return [character for character in line if not character.isprintable()]


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_each_record_is_one_line_that_nothing_obeys(route, caplog):
    caplog.set_level(logging.DEBUG, "ragstone")
    route()
    ours = [record for record in caplog.records if record.name.startswith("ragstone")]
    assert [obeyed(record.getMessage()) for record in ours] == [[]] * len(ours)
    assert not any(record.exc_info or record.stack_info for record in ours)
    assert ours or route is ROUTES["langchain"]


def test_what_a_server_says_of_a_parameter(openai_server, caplog):
    server = openai_server(lambda body: error(400, HOSTILE, param="temperature") if "temperature" in body else "yes")
    batch(OpenAICompatible("m", base_url=server.url).generate, rows=5)
    assert [obeyed(record.getMessage()) for record in caplog.records if record.name.startswith("ragstone")] == [[]]
