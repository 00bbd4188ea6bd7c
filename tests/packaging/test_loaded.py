"""How many of ragstone's statements a use loads, and that no wing comes with it: each in a process of its own."""

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
import ast, inspect, sys
ours = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("ragstone", "ragstone_langchain")]
print(sum(isinstance(node, ast.stmt) for module in ours for node in ast.walk(ast.parse(inspect.getsource(module)))))
print(*(wing for wing in ("labels", "live", "local") if f"ragstone.{wing}" in sys.modules))
"""


@pytest.mark.parametrize(
    ("program", "most", "wings"),
    [
        pytest.param("from ragstone.testing import FakeLLM", 820, "", id="fake"),
        pytest.param(SCORE, 2_700, "", id="score"),
        pytest.param(EVALUATE, 5_950, "", id="evaluate"),
        pytest.param(SCORE + EVALUATOR, 4_540, "", id="langchain evaluator"),
        pytest.param(SCORE + HANDLER, 8_160, "live", id="langchain handler"),
    ],
)
def test_what_is_loaded(program, most, wings, tmp_path):
    if "ragstone_langchain" in program:
        pytest.importorskip("langchain_core")
    done = subprocess.run([sys.executable, "-c", program + COUNT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    statements, with_wings = done.stdout.splitlines()
    assert int(statements) <= most
    assert with_wings == wings
