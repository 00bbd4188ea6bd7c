"""benchmarks/languages as a command, over a scripted judge behind a real server on the loopback."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from language_page import page

from ..support.openai_server import OpenAIServer, chat, embeddings  # noqa: TID252 - under importlib mode tests are no package

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("en", "de", "es", "zh", "ja", "hi", "ar")


def words(body):
    """A judge that answers yes, takes the first sentence, and writes in the language of what it was given; but German
    questions are English, and Spanish sentences are all needed."""
    if "input" in body:
        return embeddings([[1.0, 0.5]] * len(body["input"]))
    user = body["messages"][-1]["content"]
    name = body["response_format"]["json_schema"]["name"] if "response_format" in body else ""
    data = re.findall(r"<(\w+) [0-9a-f]{8}>\n(.*?)\n</", user, re.DOTALL)
    german = "Museum" in data[0][1] or "museum steht" in data[0][1]
    line = "What is the one?" if german else data[0][1].split("\n")[0]
    if name.endswith("response_relevancy_questions"):
        return chat(json.dumps({"questions": [{"question": f"{line}{i}", "noncommittal": False} for i in range(3)]}))
    if name.endswith("summarization_score_questions"):
        return chat(json.dumps({"items": [{"keyphrase": "k", "question": line}]}))
    if name.endswith("alignment_coverage_questions"):
        return chat(json.dumps({"questions": [line, f"{line} 2"]}))
    if name.endswith("claims"):
        return chat(json.dumps({"claims": [data[0][1]]}))
    if name.endswith("sentences"):
        every = re.findall(r"^\[(\d+)\]", data[1][1], re.MULTILINE)
        return chat(json.dumps({"ids": [int(i) for i in every] if "junto a la estación" in user else [1]}))
    if name.endswith("verdicts"):
        return chat(json.dumps({"verdicts": {"1": {"evidence": [1], "verdict": "supported"}}}))
    ids = re.findall(r"^\[(\d+)\]", data[-1][1], re.MULTILINE)
    return chat(json.dumps({"answers": dict.fromkeys(ids, "yes")}))


def run(server, out, *more):
    command = [sys.executable, "-W", "error", str(ROOT / "benchmarks/languages")]
    judge = f"test-model@{server.url}"
    return subprocess.run(
        [*command, "--judge", judge, "--out", str(out), *more],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        env={"PYTHONPATH": str(ROOT / "core"), "PYTHONUTF8": "1", "PATH": ""},
    )


@pytest.mark.slow
def test_the_table_is_written(tmp_path):
    with OpenAIServer(words) as server:
        done = run(server, tmp_path)
        assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "languages.json").read_text(encoding="utf-8"))
    figures = {(row["metric"], row["language"]): row for row in result["figures"]}
    assert len(figures) == 4 * 7
    assert {row["rows"] for row in figures.values()} == {4, 2, 1}
    assert not any(row["unscored"] for row in figures.values())
    english, spanish = (figures["context_relevancy", language] for language in ("en", "es"))
    assert (english["mean"], english["difference"]) == (0.2, 0.0)
    # one of two rows is all needed where one of five sentences was
    assert spanish["mean"] == pytest.approx(0.6)
    assert spanish["difference"] == pytest.approx(0.4)
    assert spanish["within"] == 0.5
    german = figures["response_relevancy", "de"]
    assert german["written"] == 12
    assert german["in_other_languages"] == {"en": 3}
    assert figures["response_relevancy", "hi"]["in_its_language"] == 12
    assert {row["language"]: row["unnamed"] for row in result["splitting"]}["ja"] == 1.0
    markdown = (tmp_path / "languages.md").read_text(encoding="utf-8")
    assert "| de | 4 |" in markdown
    assert "9 of 12 (3 en)" in markdown


def test_what_could_not_be_scored_is_shown_and_no_figure_is_made_up():
    row = {
        "metric": "m", "language": "de", "rows": 2, "unscored": {"judge_error": 2}, "mean": None, "twins": 0,
        "difference": None, "within": None, "written": 0, "in_its_language": 0, "in_other_languages": {},
        "llm_calls": 3, "seconds": 0.0,
    }  # fmt: skip
    assert "| de | 2 | none | none | none |  | 2 judge_error | 3 | 0 |" in page({}, [row], [])
