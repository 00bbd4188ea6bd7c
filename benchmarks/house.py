"""The house in figures: how much code there is and how far a reader walks through it, beside what is aimed at.

    python benchmarks/house.py

Needs the group `lint` (grimp, of import-linter) and the extra `langchain`. It prints one table. An issue that may add
code raises its aim in `AIMS`, and nowhere else.
"""

import ast
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import tomllib

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = tuple(ROOT / folder for folder in ("core", "integrations"))
AIMS = {
    "product lines": 23_000,
    "product files": 165,
    "lines of tests": 22_000,
    "lines of benchmarks": 4_500,
    "files crossed by metric.score()": 10,
    "files crossed by ragstone score --out": 22,
    "files crossed from a LangChain callback to a row": 24,
    "circles of imports": 0,
    "imports from a lower to a higher room": 0,
    "modules that make a table of outcomes": 1,
    "modules that write or read an outcome's fields by name": 1,
    "places that know the list of metrics": 1,
    "lines of the fifth metric, without its texts": 50,
    "places that name the fifth metric": 2,
    "broad excepts": 40,
    "casts": 100,
    "locals called found, told, given, said": 0,
}
FIFTH = "Faithfulness"
SAMPLE = {
    "user_input": "Who wrote Emma?",
    "retrieved_contexts": ["Emma is a novel by Jane Austen. It came out in 1815."],
    "response": "Jane Austen wrote Emma.",
}


def sources(*folders: Path, kinds: tuple[str, ...] = (".py", ".js", ".css", ".html")) -> list[Path]:
    """Return the source files in some folders."""
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in kinds and path.is_file())


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def parsed() -> Iterator[tuple[Path, ast.Module]]:
    for path in sources(*PRODUCT, kinds=(".py",)):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def code_figures() -> dict[str, int]:
    """Count what stands in the code itself."""
    counts: Counter[str] = Counter()
    for _, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                names = {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)} if node.type else {""}
                counts["broad excepts"] += bool(names & {"", "Exception", "BaseException"})
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
                counts["casts"] += 1
            name = node.arg if isinstance(node, ast.arg) else node.id if is_bound(node) else ""
            counts["locals called found, told, given, said"] += name in ("found", "told", "given", "said")
    return counts


def is_bound(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def import_figures() -> dict[str, int]:
    """Count circles between modules, and imports that go up."""
    import grimp

    graph = grimp.build_graph(
        "ragstone", "ragstone_langchain", "ragstone_llama_index", exclude_type_checking_imports=True
    )
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    height = {room: -i for i, rooms in enumerate(layers) for room in rooms.split(" | ")}
    upward = 0
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            low, high = height.get(".".join(importer.split(".")[:2])), height.get(".".join(imported.split(".")[:2]))
            one_room = importer.split(".")[:2] == imported.split(".")[:2]
            upward += low is not None and high is not None and high >= low and not one_room
    circles = 0
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            is_parent = module.startswith(f"{imported}.") or imported.startswith(f"{module}.")
            back = None if is_parent else graph.find_shortest_chain(imported, module)
            circles += back is not None and module < imported
    return {"circles of imports": circles, "imports from a lower to a higher room": upward}


def record_figures() -> dict[str, int]:
    """Count who keeps outcomes, who knows their form, and who knows the metrics."""
    tables = forms = lists = places = 0
    names = re.compile(r"\b(SummarizationScore|AlignmentCoverage|ResponseRelevancy|ContextRelevancy)\b")
    for path, tree in parsed():
        text = path.read_text(encoding="utf-8")
        tables += "CREATE TABLE outcomes" in text
        forms += all(f'"{name}"' in text for name in ("status", "scored", "unscored"))
        lists += len(set(names.findall(without_docstrings(tree)))) == 4
        places += re.search(rf"\b{FIFTH}\b|faithfulness", without_docstrings(tree)) is not None
    own = ast.parse((ROOT / "core/ragstone/metrics/faithfulness.py").read_text(encoding="utf-8"))
    return {
        "modules that make a table of outcomes": tables,
        "modules that write or read an outcome's fields by name": forms,
        "places that know the list of metrics": lists,
        "lines of the fifth metric, without its texts": len(without_docstrings(own).splitlines()),
        "places that name the fifth metric": places,
    }


def without_docstrings(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def crossed(call: Callable[[], object]) -> int:
    """Return how many product files a call runs code of, in all threads."""
    import threading

    call()  # once before: importing is no part of the walk
    files: set[str] = set()

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({name for name in files if name.startswith(tuple(map(str, PRODUCT)))})


def walk_figures() -> dict[str, int]:
    """Walk a sample through the house with a scripted judge."""
    import json
    import sqlite3

    from click.testing import CliRunner
    from langchain_core.runnables import RunnableLambda

    from ragstone import ContextRelevancy, Monitor, Sample
    from ragstone.cli.main import cli
    from ragstone.sinks import SQLiteSink
    from ragstone.testing import FakeLLM
    from ragstone_langchain import MonitorHandler

    def judge() -> FakeLLM:
        return FakeLLM(lambda _request: {"ids": [1]})

    metric = ContextRelevancy(llm=judge())
    folder = Path(tempfile.mkdtemp())
    (folder / "rows.jsonl").write_text(json.dumps(SAMPLE) + "\n", encoding="utf-8")
    (folder / "scripted_judge.py").write_text(
        "from ragstone.testing import FakeLLM\ndef judge():\n    return FakeLLM(lambda request: {'ids': [1]})\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(folder))

    def score_out() -> None:
        out = folder / "results.jsonl"
        arguments = ["score", str(folder / "rows.jsonl"), "--metric", "context_relevancy", "--out", str(out)]
        result = CliRunner().invoke(cli, [*arguments, "--llm", "scripted_judge:judge"], catch_exceptions=False)
        if result.exit_code or not out.stat().st_size:
            raise SystemExit(result.output)

    def callback_to_row() -> None:
        with Monitor([metric], sinks=[SQLiteSink(folder / "live.db")]) as monitor:
            chain = RunnableLambda(
                lambda _inputs: {"answer": SAMPLE["response"], "context": SAMPLE["retrieved_contexts"]}
            )
            chain.invoke({"question": SAMPLE["user_input"]}, config={"callbacks": [MonitorHandler(monitor)]})
            monitor.flush()
        with sqlite3.connect(folder / "live.db") as database:
            if not database.execute("SELECT count(*) FROM outcomes").fetchone()[0]:
                raise SystemExit("the callback left no row")

    return {
        "files crossed by metric.score()": crossed(lambda: metric.score(Sample(**SAMPLE))),
        "files crossed by ragstone score --out": crossed(score_out),
        "files crossed from a LangChain callback to a row": crossed(callback_to_row),
    }


def main() -> None:
    product = sources(*PRODUCT)
    figures = {
        "product lines": lines(product),
        "product files": len(product),
        "lines of tests": lines(sources(ROOT / "tests")),
        "lines of benchmarks": lines(sources(ROOT / "benchmarks")),
        **code_figures(),
        **import_figures(),
        **record_figures(),
        **walk_figures(),
    }
    print("| what | figure | aim | |\n|---|--:|--:|---|")
    for name, aim in AIMS.items():
        over = figures[name] - aim
        print(f"| {name} | {figures[name]:,} | {aim:,} | {f'{over:,} over' if over > 0 else ''} |")


if __name__ == "__main__":
    main()
