"""`ragstone score` over whole files: table, results, exit status, bad lines, failing judges, interruption."""

import json
import os
import re
import signal
import threading
from pathlib import Path

import pytest

from ragstone import Score, Unscored
from ragstone.batch.scoring import GIVE_UP_AFTER
from ragstone.cli.input import count_lines

from ..support.openai_server import error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import MODEL, judge, row

ALL = ("summarization_score", "alignment_coverage", "response_relevancy", "context_relevancy")
ONE = ("--metric", "context_relevancy")
FULL = Path("/dev/full")


def results(path):
    """Every line as it validates: (id, line, outcome)."""
    forms = {"scored": Score, "unscored": Unscored}
    read = []
    for text in path.read_text("utf-8").splitlines():
        value = json.loads(text)
        form = forms[value.pop("status")]
        assert value.pop("draw") == 0
        assert value.pop("judge")
        read.append((value.pop("id"), value.pop("line"), form.model_validate(value)))
    return read


def table(text):
    """The table's rows by metric."""
    lines = [line.split("  ") for line in text.splitlines() if line.startswith(("metric", *ALL))]
    head, *rows = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    return {cells[0]: dict(zip(head, cells, strict=True)) for cells in rows}


def test_all_four_metrics(score, six, tmp_path):
    done = score(six, "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 0
    assert done.stderr.startswith("Note: alignment_coverage compares response with user_input.")
    found = results(tmp_path / "out.jsonl")
    assert [(sample_id, line, outcome.metric) for sample_id, line, outcome in found] == [
        (str(i), i, name) for i in range(1, 7) for name in ALL
    ]
    assert all(isinstance(outcome, Score) for _, _, outcome in found)
    shown = table(done.stdout)
    assert list(shown) == list(ALL)
    for name in ALL:
        own = [outcome for _, _, outcome in found if outcome.metric == name]
        assert shown[name]["mean"] == f"{sum(each.value for each in own) / 6:.3f}"
        assert shown[name]["scored"] == "6/6"
        assert int(shown[name]["judge calls"]) == sum(each.usage.llm_calls for each in own)
        assert int(shown[name]["tokens in"]) == sum(each.usage.input_tokens for each in own)
        assert int(shown[name]["tokens out"]) == sum(each.usage.output_tokens for each in own)


def test_the_table_fits_80_columns_and_its_columns_line_up(score, rows):
    done = score(rows(*(row(i) for i in range(92))))
    lines = done.stdout.strip().splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 80
    assert "1,012" in done.stdout  # thousands stand apart


def test_each_line_names_the_judge(score, six, tmp_path):
    score(six, *ONE, "--out", tmp_path / "out.jsonl")
    assert {json.loads(line)["judge"] for line in (tmp_path / "out.jsonl").read_text().splitlines()} == {MODEL}


def test_the_server_is_asked_for_what_the_table_says(score, six, server):
    done = score(six, *ONE)
    asked = [seen for seen in server.seen if seen.path.endswith("/chat/completions")]
    assert int(table(done.stdout)["context_relevancy"]["judge calls"]) == len(asked) == 6


def test_concurrency_bounds_the_calls_in_flight(score, six, server):
    assert score(six, "--concurrency", "2").exit_code == 0
    assert server.max_in_flight <= 2


def test_a_metric_named_twice_is_scored_once(score, six):
    assert list(table(score(six, *ONE, *ONE).stdout)) == ["context_relevancy"]


@pytest.mark.parametrize("names", [("question", "contexts", "answer"), ("input", "retrieval_context", "actual_output")])
def test_names_of_ragas_and_deepeval(score, rows, names):
    done = score(rows(dict(zip(names, list(row(1).values()), strict=True))))
    assert [cells["scored"] for cells in table(done.stdout).values()] == ["1/1"] * 4


def test_fields_are_mapped(score, rows):
    given = rows({"q": "Who?", "source": "One. Two.", "text": "Ann.", "key": "k1"})
    fields = ("user_input=q", "retrieved_contexts=source", "response=text", "id=key")
    done = score(given, "--explain", *(arg for field in fields for arg in ("--field", field)))
    assert done.exit_code == 0
    assert "k1  summarization_score  " in done.stdout
    assert "[retrieved_contexts[0] 0-4]" in done.stdout


def test_standard_input_and_output(score, six):
    done = score("-", *ONE, "--out", "-", input=six.read_bytes())
    assert done.exit_code == 0
    assert [json.loads(line)["line"] for line in done.stdout.splitlines()] == [1, 2, 3, 4, 5, 6]
    assert table(done.stderr)["context_relevancy"]["scored"] == "6/6"


def test_results_are_utf_8_wherever_they_go(score, rows, tmp_path):
    given = rows(row(1, response="é 中 😀 \u202e", id="中"))
    piped = score(given, "--out", "-").stdout_bytes
    score(given, "--out", tmp_path / "out.jsonl")
    for written in (piped, (tmp_path / "out.jsonl").read_bytes()):
        assert json.loads(written.splitlines()[0])["id"] == "中"


def test_explain_prints_verdicts_and_where_they_point(score, six):
    done = score(six, *ONE, "--explain")
    assert "1  context_relevancy  0.250\n    1 of 4 sentences in 1 of 2 contexts are needed to answer.\n" in done.stdout
    assert "    sentence 1: relevant: Book 0 is a novel.\n        [retrieved_contexts[0] 0-18]\n" in done.stdout
    assert "    sentence 2: irrelevant: Ann 0 wrote it.\n" in done.stdout


def test_nothing_that_a_terminal_obeys_reaches_it(score, rows):
    evil = "\x1b[31m \x1b]0;title\x07 \x9b2J \u202e x."
    bad = {"response": 1, "\x1b[2J": 1}
    done = score(rows(row(1, id=evil, retrieved_contexts=[evil]), bad, {"\x1b[2J": 1}), "--explain", color=True)
    shown = done.stdout + done.stderr
    assert not [character for character in shown if not (character.isprintable() or character == "\n")]
    assert "\ufffd[31m" in shown


class TestBadLines:
    def test_they_are_reported_with_their_number_and_the_run_goes_on(self, score, rows):
        done = score(rows(b"[1]", row(2), b"{", b"", row(5), b"\xff"), *ONE)
        assert done.exit_code == 2
        assert done.stderr.splitlines() == [
            "line 1: is an array, not an object: each line is one sample, {...} (skipped)",
            "line 3: not JSON: Expecting property name enclosed in double quotes at column 2 (skipped)",
            "line 6: not UTF-8 at byte 1 (skipped)",
            "3 line(s) held no sample; see above.",
        ]
        assert table(done.stdout)["context_relevancy"]["scored"] == "2/2"

    @pytest.mark.parametrize("content", [b"", b"\n \n\r\n", b"\xef\xbb\xbf"], ids=["empty", "blank", "mark"])
    def test_a_file_without_a_line(self, score, tmp_path, content):
        path = tmp_path / "rows.jsonl"
        path.write_bytes(content)
        done = score(path)
        assert done.exit_code == 2
        assert done.stderr == "No sample: no line of the input holds one. Each line must be one JSON object.\n"

    def test_a_wrong_mapping_names_the_keys_that_are_there(self, score, rows):
        done = score(rows(row(1)), "--field", "response=answr")
        assert done.exit_code == 2
        assert "line 1: response: there is no key 'answr'; the row has 'user_input', " in done.stderr

    def test_a_line_without_a_known_field_names_the_option(self, score, rows):
        done = score(rows({"query": "Q?"}))
        assert done.exit_code == 2
        assert (
            "none of a sample's fields; the row has 'query': name them with --field FIELD=KEY (skipped)" in done.stderr
        )
        assert "fields=" not in done.stderr

    def test_a_missing_field_is_unscored_by_those_who_need_it_before_a_call(self, score, rows, server):
        done = score(rows({"user_input": "Q?", "response": "A."}))
        assert done.exit_code == 0
        shown = table(done.stdout)
        assert [shown[name]["scored"] for name in ALL] == ["0/1", "1/1", "1/1", "0/1"]
        assert [shown[name]["judge calls"] for name in (ALL[0], ALL[3])] == ["0", "0"]
        assert (
            "unscored by context_relevancy: 1 missing_input\n"
            "    first: line 1: retrieved_contexts: is missing; context_relevancy needs it\n"
        ) in done.stdout


class TestThresholds:
    @pytest.mark.parametrize(
        ("given", "code"),
        [(["0.25"], 0), (["0.2500001"], 1), (["context_relevancy=0.2"], 0), (["context_relevancy=0.3"], 1),
         (["context_relevancy=0.2", "0.9"], 0), (["0.2", "context_relevancy=0.9"], 1), (["0.9", "0.2"], 0)],
    )  # fmt: skip
    def test_the_mean_is_what_counts(self, score, six, given, code):
        done = score(six, *ONE, *(arg for each in given for arg in ("--threshold", each)))
        assert done.exit_code == code
        assert ("context_relevancy: below the threshold " in done.stderr) == bool(code)

    def test_the_message_says_both_numbers(self, score, six):
        done = score(six, *ONE, "--threshold", "0.3")
        assert done.stderr == "context_relevancy: below the threshold 0.3: its mean is 0.25\n"

    def test_each_result_says_whether_it_reaches_it(self, score, six, tmp_path):
        score(six, "--threshold", "context_relevancy=0.3", "--out", tmp_path / "out.jsonl")
        passed = {outcome.metric: outcome.passed for _, _, outcome in results(tmp_path / "out.jsonl")}
        assert passed["context_relevancy"] is False
        assert passed["response_relevancy"] is None

    def test_a_metric_with_nothing_scored_fails_its_own(self, score, rows):
        done = score(rows({"user_input": "Q?", "response": "A."}), "--threshold", "context_relevancy=0")
        assert done.exit_code == 1
        assert done.stderr == "context_relevancy: below the threshold 0: nothing was scored\n"

    def test_a_wrong_line_outweighs_it(self, score, rows):
        assert score(rows(row(1), b"["), *ONE, "--threshold", "1").exit_code == 2


class TestFailingJudge:
    def test_every_row_says_so(self, score, six, server, tmp_path):
        server.reply = lambda body: error(400, "out of\x1b[31m order")
        done = score(six, *ONE, "--out", tmp_path / "out.jsonl")
        assert done.exit_code == 1
        assert "unscored by context_relevancy: 6 judge_error\n    first: line 1: BadRequestError: " in done.stdout
        assert "out of\ufffd[31m order" in done.stdout
        assert done.stderr.startswith("Nothing could be scored; the table says why.")
        assert {outcome.reason for _, _, outcome in results(tmp_path / "out.jsonl")} == {"judge_error"}

    def test_half_way(self, score, rows, server, tmp_path):
        failing = re.compile("book [2-9]")
        server.reply = lambda body: error(403, "no more") if failing.search(str(body["messages"])) else judge(body)
        done = score(rows(*(row(i) for i in range(6))), *ONE, "--out", tmp_path / "out.jsonl")
        assert done.exit_code == 0
        assert table(done.stdout)["context_relevancy"]["scored"] == "2/6"
        assert [type(outcome) for _, _, outcome in results(tmp_path / "out.jsonl")] == [Score] * 2 + [Unscored] * 4

    def test_it_is_given_up_after_many_in_a_row(self, score, rows, server, tmp_path):
        server.reply = lambda body: error(400, "expired") if "input" not in body else judge(body)
        done = score(rows(*(row(i) for i in range(2 * GIVE_UP_AFTER))), *ONE, "--out", tmp_path / "out.jsonl")
        assert done.exit_code == 1
        assert f"Gave up: the judge failed on {GIVE_UP_AFTER} samples in a row" in done.stderr
        assert len(results(tmp_path / "out.jsonl")) == GIVE_UP_AFTER

    def test_it_is_given_up_when_the_first_call_is_refused_for_good(self, score, rows, server):
        server.reply = lambda body: error(401, "not with this key")
        done = score(rows(*(row(i) for i in range(200))), "--concurrency", 4)
        assert done.exit_code == 1
        assert len(server.bodies) <= 10
        (message,) = [line for line in done.stderr.splitlines() if not line.startswith("Note: ")]
        assert message.startswith(f"Gave up: the judge OpenAICompatible('{MODEL}', base_url='{server.url}') refused ")
        assert "call: check " in message

    def test_samples_that_cannot_be_scored_are_no_failure_of_the_judge(self, score, rows):
        done = score(rows(*({"response": "A."} for _ in range(GIVE_UP_AFTER + 1))), *ONE)
        assert done.exit_code == 1
        assert table(done.stdout)["context_relevancy"]["scored"] == f"0/{GIVE_UP_AFTER + 1}"
        assert "Gave up" not in done.stderr


class TestOutput:
    def test_an_earlier_file_is_replaced(self, score, six, tmp_path):
        out = tmp_path / "out.jsonl"
        out.write_text("old\n" * 1000)
        score(six, *ONE, "--out", out)
        assert len(results(out)) == 6

    @pytest.mark.parametrize("same", ["rows.jsonl", "./rows.jsonl", "link.jsonl", "hard.jsonl"])
    def test_the_input_is_never_overwritten(self, score, six, tmp_path, monkeypatch, same):
        monkeypatch.chdir(tmp_path)
        Path("link.jsonl").symlink_to(six)
        Path("hard.jsonl").hardlink_to(six)
        before = six.read_bytes()
        done = score(six, "--out", same)
        assert (done.exit_code, six.read_bytes()) == (2, before)
        assert f"--out {same}: is the input FILE itself; name another file" in done.stderr

    def test_standard_input_that_is_no_file(self, score, six, tmp_path):
        (tmp_path / "out.jsonl").touch()
        assert score("-", *ONE, "--out", tmp_path / "out.jsonl", input=six.read_bytes()).exit_code == 0
        assert len(results(tmp_path / "out.jsonl")) == 6

    @pytest.mark.parametrize("more", [("--field", "response=bar"), ("--set", "context_relevancy.language=xx")])
    def test_it_is_not_touched_without_a_result(self, score, six, tmp_path, more):
        out = tmp_path / "out.jsonl"
        for before in (None, b"paid for\n"):
            assert score(six, *ONE, *more, "--out", out).exit_code == 2
            assert (out.read_bytes() if out.exists() else None) == before
            out.write_bytes(b"paid for\n")

    def test_its_help_says_that_it_replaces(self, run):
        assert "What is in the file is replaced" in " ".join(run("score", "--help").stdout.split())

    def test_it_may_be_a_pipe(self, score, six, tmp_path):
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        read = []
        reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
        reader.start()
        assert score(six, *ONE, "--out", fifo).exit_code == 0
        reader.join()
        assert read[0].count(b"\n") == 6

    def test_it_is_not_touched_when_the_judge_is_not_there(self, run, six, tmp_path):
        out = tmp_path / "out.jsonl"
        out.write_text("paid for\n")
        assert run("score", six, "--llm", "http://127.0.0.1:9", "--out", out).exit_code == 2
        assert out.read_text() == "paid for\n"

    def test_a_folder_that_is_not_there(self, score, six, tmp_path):
        done = score(six, *ONE, "--out", tmp_path / "no" / "out.jsonl")
        assert done.exit_code == 2
        assert "out.jsonl: no such folder: " in done.stderr

    @pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
    def test_a_full_disk_ends_the_run_with_the_table(self, score, six):
        done = score(six, *ONE, "--out", FULL)
        assert done.exit_code == 2
        assert "context_relevancy" in table(done.stdout)
        assert done.stderr.endswith("Error: --out /dev/full: cannot write: No space left on device\n")


@pytest.mark.usefixtures("untraced")
def test_ctrl_c_prints_the_table_of_what_was_scored(score, rows, server, tmp_path):
    def reply(body):
        if "book 3" in str(body):
            os.kill(os.getpid(), signal.SIGINT)
        return judge(body)

    server.reply = reply
    done = score(rows(*(row(i) for i in range(50))), *ONE, "--concurrency", "1", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == "Interrupted: the table is of what was scored so far."
    written = results(tmp_path / "out.jsonl")
    assert 4 <= len(written) <= 5  # what was in flight has been finished
    assert table(done.stdout)["context_relevancy"]["scored"] == f"{len(written)}/{len(written)}"


def test_lines_are_counted_but_not_of_what_cannot_be_read_twice(six, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert (count_lines(str(six)), count_lines("-"), count_lines(str(fifo))) == (6, None, None)


def test_the_embedder_may_be_another_server(score, six, openai_server):
    other = openai_server(judge)
    done = score(six, "--metric", "response_relevancy", "--embedder", f"{MODEL}@{other.url}")
    assert table(done.stdout)["response_relevancy"]["scored"] == "6/6"
    assert {seen.path for seen in other.seen} == {"/v1/models", "/v1/embeddings"}


def test_asking_is_for_all_metrics_and_set_goes_before_it(score, six, tmp_path, server):
    done = score(six, "--metric", "context_relevancy", "--asking", "one_by_one", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 0
    assert table(done.stdout)["context_relevancy"]["judge calls"] == "36"
    one_call = ("--set", "context_relevancy.asking=together")
    done = score(six, "--metric", "context_relevancy", "--asking", "one_by_one", *one_call)
    assert table(done.stdout)["context_relevancy"]["judge calls"] == "6"
