"""What the embedded judge reads and writes for one sample of each kind, beside a former version.

    python benchmarks/tokens.py FOLDER [--former CHECKOUT] [--metric NAME]...

FOLDER holds the labelled rows, which are not part of the repository; the rows are named in `ROWS`. Each version runs
in a process of its own, with its own defaults, as `ragstone score` runs it: one call in flight. For each row they take
turns, the former version first in every second one. Before each row the judge is asked something else, so that nothing
of the row is kept. Tokens are the engine's own figures: those of the prompts, those of them that it did not keep from
the call before, and those that it wrote.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROWS = [
    ("long answer", "response_relevancy", "response_relevancy__wikieval", "wikieval-00-ar-answer"),
    ("long answer", "response_completeness", "response_relevancy__wikieval", "wikieval-00-ar-answer"),
    ("CLAPNQ", "context_relevancy", "context_relevancy__clapnq", "clapnq-4891441691095935384"),
    ("HotpotQA", "context_relevancy", "context_relevancy__hotpotqa", "hotpot-5a7dc3275542997cc2c4749c"),
    ("SummEval", "alignment_coverage", "summarization__summeval", "summeval-db59986b544c-M14"),
    ("SummEval", "summarization_score", "summarization__summeval", "summeval-db59986b544c-M14"),
    ("RAG", "faithfulness", "response_relevancy__mtrag_turn1", "mtrag-ca6f0197d2c0c4d6e3be090c3f8bf30f-1-gpt-4o"),
]
"""Kind, metric, file and id; of 617 tokens of data for RAG, else of as many as in the table that asked for this."""
FIGURES = ("calls", "prompt", "read", "written", "cpu", "wall")


def main() -> None:
    """Run the rows in both versions, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--former", type=Path, help="a checkout of the former version")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with ragstone[local], for both")
    parser.add_argument("--metric", action="append", help="only this one; may be repeated")
    given = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    versions = [_child(given.python, checkout) for checkout in (given.former, here) if checkout]
    table: list[tuple[str, str, list[dict[str, Any]]]] = []
    for kind, metric, file, name in ROWS:
        if given.metric and metric not in given.metric:
            continue
        job = {"metric": metric, "sample": _sample(given.folder, file, name, metric)}
        turns = versions if len(table) % 2 == 0 else versions[::-1]
        found = {id(version): _ask(version, job) for version in turns}
        table.append((kind, metric, [found[id(version)] for version in versions]))
        print(f"{kind}, {metric}: {[found[id(version)] for version in versions]}", file=sys.stderr, flush=True)
    for version in versions:
        version.communicate()
    print("\n".join(_lines(table)))


def _sample(folder: Path, file: str, name: str, metric: str) -> dict[str, Any]:
    (path,) = folder.rglob(f"{file}.jsonl")
    with path.open(encoding="utf-8") as lines:
        row = next(row for row in map(json.loads, lines) if row["id"] == name)
    if "source" in row and metric == "alignment_coverage":
        return {"user_input": row["source"], "response": row["response"]}
    contexts = [row["source"]] if "source" in row else row.get("retrieved_contexts", [])
    return {"user_input": row.get("user_input"), "retrieved_contexts": contexts, "response": row.get("response")}


def _child(python: str, checkout: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "core")}
    command = [python, str(Path(__file__).resolve()), "--child"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(version: "subprocess.Popen[str]", job: dict[str, Any]) -> dict[str, Any]:
    assert version.stdin is not None
    assert version.stdout is not None
    version.stdin.write(json.dumps(job) + "\n")
    version.stdin.flush()
    reply: dict[str, Any] = json.loads(version.stdout.readline())
    return reply


def _lines(table: list[tuple[str, str, list[dict[str, Any]]]]) -> list[str]:
    """Return the table in Markdown; a row that a version cannot score counts in no sum."""
    rows = [(kind, metric, found) for kind, metric, found in table if all("read" in each for each in found)]
    sums = [{name: sum(found[n][name] for *_, found in rows) for name in FIGURES} for n in range(len(table[0][2]))]
    paired = len(sums) == 2
    heads = ["row", "metric", "calls", "prompt tokens", "really read", "written", "CPU s", "wall s"]
    heads += ["read, former / now", "CPU, former / now", "wall, former / now"] if paired else []
    lines = [f"| {' | '.join(heads)} |", f"|---|---|{'--:|' * (len(heads) - 2)}"]
    for kind, metric, found in [*table, ("sum", "rows that all versions score", sums)]:
        cells = [" to ".join(_cell(each, name) for each in found) for name in FIGURES]
        if paired:
            both = all("read" in each for each in found)
            ratios = [f"{found[0][name] / found[1][name]:.2f}" if both and found[1][name] else "-" for name in FIGURES]
            cells += [ratios[FIGURES.index(name)] for name in ("read", "cpu", "wall")]
        lines.append(f"| {' | '.join([kind, metric, *cells])} |")
    return [*lines, *(f"\nNot scored: {each['error']}" for *_, found in table for each in found if "error" in each)]


def _cell(found: dict[str, Any], name: str) -> str:
    if name not in found:
        return "-"
    return f"{found[name]:.1f}" if name in ("cpu", "wall") else f"{found[name]:,}"


def child() -> None:
    """Score what comes on stdin, with the version that is on the path; a JSON line of figures for each."""
    from ragstone import Sample, Unscored, evaluate
    from ragstone.judge import LLMRequest
    from ragstone.local import LocalEmbedder, LocalLLM, engine

    usages: list[dict[str, Any]] = []
    reply = engine._reply  # noqa: SLF001 - in both versions it sees what the engine says

    def noting(chunks: list[dict[str, Any]]) -> object:
        usages.extend(chunk["usage"] for chunk in chunks if chunk.get("usage"))
        return reply(chunks)

    engine._reply = noting  # noqa: SLF001
    llm, embedder = LocalLLM(), LocalEmbedder()
    llm.load()
    embedder.embed(["load"])
    for line in sys.stdin:
        job = json.loads(line)
        llm.generate(LLMRequest("other", "Reply with one word.", "Is water wet?", {}, choices=("yes", "no")))
        usages.clear()
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            report = evaluate(
                [Sample(**job["sample"])],
                [job["metric"]],
                llm=llm,
                embedder=embedder,
                max_concurrency=1,
                progress=False,
            )
        except ValueError as error:  # a metric that this version does not have
            print(json.dumps({"error": f"{job['metric']}: {error}"[:200]}), flush=True)
            continue
        found: dict[str, Any] = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        (record,) = report.results()
        if isinstance(record.outcome, Unscored):
            why = f"{job['metric']}: {record.outcome.reason}, {record.outcome.detail}"
            print(json.dumps({"error": why[:200]}), flush=True)
            continue
        kept = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
        found |= {"calls": len(usages), "prompt": sum(usage["prompt_tokens"] for usage in usages)}
        found |= {"read": found["prompt"] - kept, "written": sum(usage["completion_tokens"] for usage in usages)}
        print(json.dumps(found), flush=True)
    llm.close()


if __name__ == "__main__":
    child() if sys.argv[1:] == ["--child"] else main()
