"""`ragstone explain` and the text for people."""

import json

import pytest

from ragstone import Evidence, Score, Unscored, Verdict
from ragstone.batch.report.report import Report
from ragstone.cli.show import evidence_lines
from ragstone.text.plain import printable

from .conftest import row


@pytest.fixture
def results(score, rows, tmp_path):
    path = tmp_path / "out.jsonl"
    score(rows(row(1), row(2, id="two"), {"response": "A.", "id": "bare"}, row(4, id="two")), "--out", path)
    return path


def heads(text):
    return [line for line in text.splitlines() if not line.startswith(" ")]


def test_the_first_sample_by_default(run, results):
    done = run("explain", results)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [head.split()[:2] for head in heads(done.stdout)] == [
        ["1", name] for name in ("summarization_score", "alignment_coverage", "response_relevancy", "context_relevancy")
    ]
    assert "        [user_input 0-17] Who wrote book 1?\n" in done.stdout
    assert "    sentence 1: relevant: Book 1 is a novel.\n        [retrieved_contexts[0] 0-18]\n" in done.stdout


def test_one_sample_and_one_metric(run, results):
    done = run("explain", results, "bare", "--metric", "context_relevancy")
    assert done.stdout == (
        "bare  context_relevancy  unscored (missing_input): user_input: is missing; context_relevancy needs it\n"
    )


def test_an_id_that_stands_twice(run, results):
    assert len(heads(run("explain", results, "two", "--metric", "context_relevancy").stdout)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "{path} has no sample 'none'"),
        (["none", "--metric", "response_relevancy"], "{path} has no sample 'none' with response_relevancy"),
    ],
)
def test_what_is_not_there(run, results, arguments, message):
    done = run("explain", results, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == message.format(path=results) + "\n"


def test_the_last_line_of_a_killed_run_hides_nothing(run, results):
    with results.open("ab") as out:
        out.write(results.read_bytes()[:100])
    done = run("explain", results)
    assert done.exit_code == 0
    assert len(heads(done.stdout)) == 4
    assert done.stderr == f"{results.name}: its end is missing, as where a run was killed: what is whole was read\n"


def test_a_report_of_to_json_is_read_as_well(run, results, tmp_path):
    path = tmp_path / "report.json"
    Report.load(results).to_json(path)
    assert run("explain", path).stdout == run("explain", results).stdout
    assert run("explain", path, "none").stderr == f"{path} has no sample 'none'\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"garbage\n[1]\n3\nnull\n",
        b"\xff\xfe\n",
        b"[" * 200_000,
        json.dumps(row(1)).encode(),
        b'{"status": "scored", "id": "1", "line": 1}',
        b'{"status": "odd", "id": "1", "line": 1}',
        b'{"status": [], "id": "1", "line": 1}',
    ],
    ids=["empty", "blank", "no-objects", "no-text", "deep", "samples", "no-outcome", "odd-status", "no-status"],
)
def test_wrong_files(run, tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    done = run("explain", path)
    assert (done.exit_code, done.stdout) == (2, "")
    message = f"{path}: holds no results: give a file that" if content.strip() else f"{path} has no result\n"
    assert done.stderr.startswith(message)


@pytest.mark.parametrize(("path", "message"), [("none", "does not exist"), (".", "is a directory")])
def test_no_file(run, path, message):
    done = run("explain", path)
    assert done.exit_code == 2
    assert message in done.stderr


def test_lines():
    sentence = Evidence(field="retrieved_contexts", chunk=2, start=5, end=9, text="So.")
    whole = Evidence(field="response", start=0, end=3, text="\x1b[2J")
    score = Score(
        metric="m",
        value=0.5,
        passed=False,
        reason="1 of\n2.",
        breakdown={"part": 1 / 3},
        version="1",
        verdicts=(
            Verdict(id="1", kind="sentence", text="So.", verdict="relevant", probability=0.987, evidence=(sentence,)),
            Verdict(id="2", kind="sentence", text="No.", verdict="irrelevant", probability=0.1),
            Verdict(id="1", kind="claim", text="Long " * 50, verdict="supported", evidence=(sentence, whole)),
        ),
    )
    assert list(evidence_lines("a\nb", score)) == [
        "a b  m  0.500  below its threshold",
        "    1 of 2.",
        "    part 0.333",
        "    sentence 1: relevant p(relevant)=0.99: So.",
        "        [retrieved_contexts[2] 5-9]",
        "    sentence 2: irrelevant p(relevant)=0.10: No.",
        f"    claim 1: supported: {('Long ' * 50)[:99]}…",
        "        [retrieved_contexts[2] 5-9] So.",
        "        [response 0-3] \ufffd[2J",
    ]
    bare = Score(metric="m", value=1.0, passed=True, reason="Yes.", version="1")
    assert list(evidence_lines("x", bare)) == ["x  m  1.000  passed", "    Yes."]
    none = Unscored(metric="m", reason="judge_error", detail="E: \x1b[1m\nmore", version="1")
    assert list(evidence_lines("x", none)) == ["x  m  unscored (judge_error): E: \ufffd[1m more"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("می‌خواهم", "می‌خواهم"),  # with a zero-width non-joiner
        ("👩‍💻", "👩‍💻"),
        ("a\u202eb\u2066c", "a\ufffdb\ufffdc"),  # what reverses the line
        ("\x00\x7f\x9b\ud800", "\ufffd" * 4),
        ("a \t\r\n b\u2028c", "a b c"),
        ("x" * 10_000_000, "x" * 99 + "…"),
        ("x" * 100, "x" * 100),
        (" " * 5000 + "x", "…"),
    ],
)
def test_printable(text, shown):
    assert printable(text, 100) == shown
