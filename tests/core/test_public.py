"""The names that users import, what they say of themselves, and what importing them costs nobody."""

import ast
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import ragstone
from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, SummarizationScore
from ragstone.testing import FakeEmbedder, FakeLLM

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(ragstone.__path__, "ragstone.")
    if not module.name.endswith("__main__")
)
WITH_ALL = [
    "ragstone",
    "ragstone.asking",
    "ragstone.metrics",
    "ragstone.monitor",
    "ragstone.report",
    "ragstone.sinks",
    "ragstone.testing",
    "ragstone.text",
]
LOADED_WHEN_ASKED_FOR = {"ragstone": {"Monitor", "Report", "aevaluate", "evaluate"}}
PROMISED = {
    "Sample",
    "Score",
    "Unscored",
    "Verdict",
    "Usage",
    "SummarizationScore",
    "AlignmentCoverage",
    "ResponseRelevancy",
    "ContextRelevancy",
    "LLM",
    "Embedder",
    "Metric",
    "Monitor",
    "Report",
    "aevaluate",
    "evaluate",
}


@pytest.mark.parametrize("name", WITH_ALL)
def test_all_is_sorted_and_is_what_is_there(name):
    module = importlib.import_module(name)
    upper = [n for n in module.__all__ if n.isupper()]
    classes = [n for n in module.__all__ if n[0].isupper() and not n.isupper()]
    rest = [n for n in module.__all__ if not n[0].isupper()]
    assert module.__all__ == [*sorted(upper), *sorted(classes), *sorted(rest)]
    assert len(set(module.__all__)) == len(module.__all__)
    public = {
        n
        for n, value in vars(module).items()
        if not inspect.ismodule(value) and (not n.startswith("_") or n == "__version__") and n != "TYPE_CHECKING"
    }
    assert set(module.__all__) == public | LOADED_WHEN_ASKED_FOR.get(name, set())
    assert all(hasattr(module, n) for n in module.__all__)


def test_an_unknown_name_is_said_to_be_unknown():
    with pytest.raises(AttributeError, match="module 'ragstone' has no attribute 'Monitr'"):
        getattr(ragstone, "Monitr")  # noqa: B009


def test_the_promised_names_are_there():
    assert set(ragstone.__all__) >= PROMISED
    assert {"FakeEmbedder", "FakeLLM"} <= set(importlib.import_module("ragstone.testing").__all__)
    assert "split_sentences" in importlib.import_module("ragstone.text").__all__


def public_things():
    for name in WITH_ALL:
        module = importlib.import_module(name)
        for thing in module.__all__:
            value = getattr(module, thing)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield pytest.param(value, id=f"{name}.{thing}")


@pytest.mark.parametrize("thing", list(public_things()))
def test_everything_public_says_what_it_is(thing):
    own = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
    assert own
    assert own.strip()
    if inspect.isclass(thing) and thing.__module__.startswith("ragstone.metrics"):
        assert ">>>" in own
        assert "higher is better" in own or thing is ragstone.Metric
    for name, member in vars(thing).items() if inspect.isclass(thing) else ():
        if not name.startswith("_") and inspect.isfunction(member):
            assert inspect.getdoc(member), f"{thing.__name__}.{name}"


NO_EXAMPLE = {"LLM", "Embedder", "Outcome", "BadReply", "CannotScore", "EmbedRequest", "Meter", "Reply"}


@pytest.mark.parametrize("name", sorted(set(ragstone.__all__) - NO_EXAMPLE - {"__version__"}))
def test_every_class_of_the_front_page_has_an_example(name):
    assert ">>>" in getattr(ragstone, name).__doc__


def test_metric_facts():
    llm, embedder = FakeLLM(lambda request: ""), FakeEmbedder()
    facts = []
    for metric in (
        SummarizationScore(llm=llm),
        AlignmentCoverage(llm=llm),
        ResponseRelevancy(llm=llm, embedder=embedder),
        ContextRelevancy(llm=llm),
    ):
        facts.append(
            (metric.name, metric.bounds, metric.higher_is_better, tuple(metric.required_fields), metric.threshold)
        )
        assert metric.version.isdecimal()
        assert type(metric).name == metric.name
        assert isinstance(metric, ragstone.Metric)
    assert facts == [
        ("summarization_score", (0.0, 1.0), True, ("retrieved_contexts", "response"), None),
        ("alignment_coverage", (0.0, 1.0), True, ("user_input", "response"), 0.5),
        ("response_relevancy", (-1.0, 1.0), True, ("user_input", "response"), None),
        ("context_relevancy", (0.0, 1.0), True, ("user_input", "retrieved_contexts"), None),
    ]


def fresh(code, *args):
    """Run code in a fresh process that finds ragstone where this one did; return its last line as JSON."""
    front = f"import sys; sys.path.insert(0, {str(Path(ragstone.__file__).parents[1])!r})\n"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", front + code, *args], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


FRAMEWORKS = (
    "langchain", "langchain_core", "langchain_classic", "langsmith", "langgraph", "llama_index", "ragas", "deepeval",
    "ragstone_langchain", "ragstone_llama_index",
)  # fmt: skip


def test_no_module_of_the_core_imports_a_framework():
    loaded = fresh(
        """
import importlib, json
missed = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        if error.name is None or error.name.startswith("ragstone"):
            raise
        missed.append(name)  # an extra that is not installed
print(json.dumps([sorted(sys.modules), missed]))
""",
        *MODULES,
    )
    names, missed = loaded
    assert not {name.split(".")[0] for name in names} & set(FRAMEWORKS)
    assert {"ragstone.asking.flow", "ragstone.metrics.base", "ragstone.testing.contracts"} <= set(names)
    assert not [name for name in missed if name.split(".")[1] in ("asking", "metrics", "testing", "text", "judge")]


def test_no_module_of_the_core_names_a_framework_in_an_import():
    """Also not within a function, which importing does not show."""
    for path in Path(ragstone.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            assert not {name.split(".")[0] for name in names} & set(FRAMEWORKS), path


def test_importing_is_light_and_leaves_the_machine_alone():
    loaded, events, threads = fresh("""
import json, threading
events = []
def audit(event, args):
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        events.append(["write", str(args[0])])
    elif event.split(".")[0] in ("socket", "subprocess", "urllib", "shutil", "ftplib", "smtplib"):
        events.append([event])
    elif event in ("os.mkdir", "os.remove", "os.rename", "os.system", "os.exec", "os.fork", "os.posix_spawn", "_thread.start_new_thread"):
        events.append([event])
sys.dont_write_bytecode = True
import ctypes, socket, ssl  # what pydantic and asyncio load of the standard library is not ours
events.clear()
sys.addaudithook(audit)
import ragstone
from ragstone import ResponseRelevancy, Sample
events = [event for event in events if event[0] != "socket.__new__"]
print(json.dumps([sorted(sys.modules), events, [t.name for t in threading.enumerate()]]))
""")
    top = {name.split(".")[0] for name in loaded}
    assert not top & {"numpy", "pysbd", "openai", "httpx", "click", "tqdm", "xllamacpp", "onnxruntime", "tokenizers"}
    assert not top & set(FRAMEWORKS)
    assert "ragstone.local" not in loaded
    assert "ragstone.cli" not in loaded
    assert events == []
    assert threads == ["MainThread"]


def test_the_audit_above_sees_what_it_looks_for(tmp_path):
    """The gate shown to fail: the same hook on code that writes and starts a thread."""
    events = fresh(
        """
import json, threading
events = []
def audit(event, args):
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        events.append("write")
    elif event == "_thread.start_new_thread" or event.startswith("socket."):
        events.append(event)
sys.addaudithook(audit)
open(sys.argv[1], "w").close()
import socket
socket.socket().close()
thread = threading.Thread(target=print); thread.start(); thread.join()
print(json.dumps(sorted(set(events))))
""",
        str(tmp_path / "written"),
    )
    assert "write" in events
    assert any(event.startswith("socket.") for event in events)


def test_making_a_metric_loads_no_numpy():
    loaded = fresh("""
import json
from ragstone import ResponseRelevancy, ContextRelevancy, Sample
from ragstone.testing import FakeLLM, FakeEmbedder
ResponseRelevancy(llm=FakeLLM(lambda r: ""), embedder=FakeEmbedder())
ContextRelevancy(llm=FakeLLM(lambda r: "")).score(Sample())
print(json.dumps(sorted(sys.modules)))
""")
    assert not {name.split(".")[0] for name in loaded} & {"numpy", "pysbd"}
