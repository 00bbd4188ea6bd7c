"""How many of ragstone's modules a use loads: each in a process of its own."""

import subprocess
import sys

import pytest

JUDGE = """
from ragstone import BaseLLM, ContextRelevancy, Sample, evaluate
from ragstone.judge import LLMReply
class Judge(BaseLLM):
    model = "m"
    def generate(self, request):
        return LLMReply('{"ids": [1]}')
metric, sample = ContextRelevancy(llm=Judge()), Sample(user_input="Rain?", retrieved_contexts=["It rained."])
"""
SCORE = JUDGE.replace(", evaluate", "") + "assert metric.score(sample).value == 1.0"
EVALUATE = JUDGE + "str(evaluate([sample], metric, progress=False))"
EVALUATOR = """
from ragstone_langchain import RagEvaluator
RagEvaluator(metric)(inputs="Rain?", outputs={"answer": "Yes.", "context": ["It rained."]})
"""
HANDLER = """
from langchain_core.runnables import RunnableLambda
from ragstone import Monitor
from ragstone.live import SQLiteSink
from ragstone_langchain import MonitorHandler
answer = RunnableLambda(lambda asked: asked | {"context": ["It rained."], "answer": "Yes."})
with Monitor(metric, sinks=SQLiteSink("outcomes.db")) as monitor:
    answer.invoke({"question": "Rain?"}, config={"callbacks": [MonitorHandler(monitor)]})
"""
COUNT = """
import sys
print(sum(name.partition(".")[0] in ("ragstone", "ragstone_langchain") for name in sys.modules))
print("ragstone.live" in sys.modules)
"""


@pytest.mark.parametrize(
    ("program", "most", "live"),
    [
        pytest.param("from ragstone.testing import FakeLLM", 12, False, id="fake"),
        pytest.param(SCORE, 25, False, id="score"),
        pytest.param(EVALUATE, 50, False, id="evaluate"),
        pytest.param(SCORE + EVALUATOR, 35, False, id="langchain evaluator"),
        pytest.param(SCORE + HANDLER, 64, True, id="langchain handler"),
    ],
)
def test_modules(program, most, live, tmp_path):
    if "ragstone_langchain" in program:
        pytest.importorskip("langchain_core")
    done = subprocess.run([sys.executable, "-c", program + COUNT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, with_live = done.stdout.split()
    assert int(count) <= most
    assert with_live == str(live)
