"""`ragstone explain` and the text for people."""

import gzip

import pytest

from ragstone import Evidence, Score, Unscored, Verdict
from ragstone.cli.output import evidence_lines
from ragstone.metrics.names import GROUPS
from ragstone.plain import printable
from ragstone.report import Report

from .conftest import row


@pytest.fixture
def results(score, rows, tmp_path):
    path = tmp_path / "out.jsonl"
    score(
        rows(row(1), row(2, id="two"), {"response": "A.", "id": "bare"}, row(4, id="two")),
        "--out",
        path,
        "--concurrency",
        "1",
    )
    return path


def heads(text):
    return [line for line in text.splitlines() if not line.startswith((" ", "question: ", "context ", "response: "))]


def test_the_first_sample_by_default_or_one_by_id_and_metric(run, results, tmp_path):
    done = run("explain", results)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [head.split()[:2] for head in heads(done.stdout)] == [["1", name] for name in GROUPS["rag"]]
    assert done.stdout.splitlines()[:4] == [
        "question: Who wrote book 1?",
        "context 1: Book 1 is a novel. Ann 1 wrote it.",
        "context 2: It rains. It snows.",
        "response: Ann 1 did.",
    ]
    assert run("explain", results, "--metric", "rag").stdout == done.stdout
    assert "    sentence 1: relevant: Book 1 is a novel.\n        [context 1 0-18]\n" in done.stdout
    one = ("--metric", "context_relevancy")
    assert run("explain", results, "bare", *one).stdout == (
        "response: A.\n"
        "bare  context_relevancy  unscored (missing_input): user_input: is missing; context_relevancy needs it\n"
    )
    missing = run("explain", results, "none", *one)
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert missing.stderr == (
        f"Error: {results} has no sample 'none' with context_relevancy; it holds response_relevancy, "
        "response_completeness, context_relevancy, faithfulness of '1', 'two', 'bare'\n"
    )
    Report.load(results).to_json(tmp_path / "report.json")
    packed = tmp_path / "report.json.gz"
    packed.write_bytes(gzip.compress((tmp_path / "report.json").read_bytes()))
    for file in (tmp_path / "report.json", packed):
        assert run("explain", file).stdout == done.stdout


def test_history_is_printed_above_the_scores_of_its_sample(run, score, rows, tmp_path):
    turns = [{"role": "user", "content": "Who\x1b[2J wrote it?"}, {"role": "assistant", "content": "She."}]
    out = tmp_path / "out.jsonl"
    score(rows({**row(1), "before": turns}), "--out", out, "--field", "history=before")
    lines = run("explain", out).stdout.splitlines()
    assert lines[:2] == ["user: Who\\x1b[2J wrote it?", "assistant: She."]
    assert sum(line.startswith(("user: ", "question: ")) for line in lines) == 2
    assert any("The question was taken as: " in line for line in lines)
    score(rows({**row(1), "before": turns}), "--out", out, "--field", "history=before", "--no-texts")
    assert "She." not in run("explain", out).stdout + out.read_text()


def test_the_last_line_of_a_killed_run_hides_nothing(run, results):
    with results.open("ab") as out:
        out.write(results.read_bytes()[:100])
    done = run("explain", results)
    assert (done.exit_code, len(heads(done.stdout))) == (0, len(GROUPS["rag"]))
    assert done.stderr == f"{results.name}: its end is missing, as where a run was killed: what is whole was read\n"


@pytest.mark.parametrize("content", [b"", b"garbage\n[1]\n3\nnull\n\xff\xfe\n"], ids=["empty", "garbage"])
def test_wrong_files(run, tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    done = run("explain", path)
    assert (done.exit_code, done.stdout) == (2, "")
    message = f"Error: {path}: has no results: pass an unchanged file" if content else f"Error: {path} has no result\n"
    assert done.stderr.startswith(message)


def test_lines(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    evidence = Evidence(field="retrieved_contexts", chunk=2, start=5, end=9, text="\x1b[2J")
    verdict = Verdict(
        id="1", kind="claim", text="Long " * 50, verdict="supported", probability=0.987, evidence=(evidence,)
    )
    score = Score(
        metric="m",
        value=0.5,
        passed=False,
        reason="1 of\n2.",
        breakdown={"part": 1 / 3},
        version="1",
        verdicts=(verdict,),
    )
    assert list(evidence_lines("a\nb", score)) == [
        "a b  m  0.500  below its threshold",
        "    1 of 2.",
        "    part 0.333",
        f"    claim 1: supported (99 % sure): {('Long ' * 50)[:99]}…",
        "        [context 3 5-9] \\x1b[2J",
    ]
    none = Unscored(metric="m", reason="judge_error", detail="E: \x1b[1m\nmore", version="1")
    assert list(evidence_lines("x", none)) == ["x  m  unscored (judge_error): E: \\x1b[1m more"]
    for outcome in (score, none):  # print says the same
        assert f"x  {outcome}" == "\n".join(evidence_lines("x", outcome))


def test_printable():
    for text, shown in (
        ("می‌خواهم 👩‍💻", "می‌خواهم 👩‍💻"),  # with zero-width joiners
        ("a\u202eb\u2066c\x00\x7f\x9b\ud800", r"a\u202eb\u2066c\x00\x7f\x9b\ud800"),  # reverses the line, or obeyed
        ("a \t\r\n b\u2028c", "a b c"),
        ("x" * 10_000_000, "x" * 99 + "…"),
    ):
        assert printable(text, 100) == shown


def test_results_without_texts_say_how_to_keep_them(run, score, rows, tmp_path):
    score(rows(row(1)), "--no-texts", "--out", tmp_path / "out.jsonl")
    done = run("explain", tmp_path / "out.jsonl")
    assert (done.exit_code, done.stderr.count("Monitor(store_text=True)")) == (0, 1)
