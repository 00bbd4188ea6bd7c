"""Apps as public code has them, run live by the handler and read from LangSmith's run of them."""

import json
from typing import Any

import pytest

pytest.importorskip("langgraph.graph")
pytest.importorskip("langchain.agents")

from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from ragstone.testing import FakeLLM
from ragstone_langchain import MonitorHandler, RagEvaluator

from ..support.noting import Noting  # noqa: TID252
from .monitored import parts
from .public_agents import AGENTS
from .public_chains import CHAINS
from .test_live_and_offline import Tells

pytestmark = pytest.mark.usefixtures("offline")


@pytest.mark.parametrize(
    ("make", "options", "asked", "expected"), [*CHAINS.values(), *AGENTS.values()], ids=[*CHAINS, *AGENTS]
)
def test_a_public_app(make: Any, options: Any, asked: Any, expected: Any) -> None:
    monitor, evaluator = Noting(), RagEvaluator(Tells(llm=FakeLLM("")), **options)
    traced = RunCollectorCallbackHandler()
    make().invoke(asked, {"callbacks": [MonitorHandler(monitor, **options), traced]})
    if isinstance(expected, str):
        # Nothing that stands there can be meant, so that nothing is offered.
        assert (monitor.samples, monitor.skipped, monitor.likely) == ([], {expected: 1}, [])
        return
    question, found, said = parts(monitor.only)
    assert (question, sorted(found), said) == (expected[0], sorted(expected[1]), expected[2])
    offline = json.loads(evaluator.as_run_evaluator().evaluate_run(traced.traced_runs[-1]).comment)
    assert [question, sorted(found), said] == [offline[0], sorted(offline[1]), offline[2]]
