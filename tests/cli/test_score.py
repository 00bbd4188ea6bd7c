"""`ragstone score` over whole files: table, results, exit status, bad lines, failing judges, interruption."""

import gzip
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from ragstone.metrics.names import GROUPS, metric_names
from ragstone.results.record import decode_rows

from ..support.command import without_fields  # noqa: TID252 - under importlib mode tests are no package
from ..support.openai_server import error  # noqa: TID252
from .conftest import MODEL, answer, row

ALL = set(metric_names())
RAG = tuple(GROUPS["rag"])
ONE = ("--metric", "context_relevancy")
FULL = Path("/dev/full")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.jsonl"


def results(path):
    """Every line as it validates: (id, line, outcome)."""
    lines = path.read_bytes().splitlines()[1:]  # the first says what is known of the run
    records = [record for _, record in decode_rows(enumerate(lines))]
    assert all(record is not None and record.judge for record in records)
    read = [(record.sample_id, record.row + 1, record.outcome) for record in records if record is not None]
    return sorted(read, key=lambda each: each[1])


def table(text):
    """The table's rows by metric."""
    lines = [line.split("  ") for line in text.splitlines() if line.startswith(("metric", *ALL)) and "  " in line]
    head, *rows = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    return {cells[0]: dict(zip(head, cells, strict=True)) for cells in rows}


def test_the_metrics_that_fit_the_rows(score, six, server, out):
    done = score(six, "--concurrency", "2", "--out", out)
    assert done.exit_code == 0
    assert without_fields(done.stderr) == (
        f"Metrics: rag ({', '.join(RAG)}), because row 1 has user_input, retrieved_contexts and response.\n"
    )
    found = results(out)
    assert [(sample_id, line, outcome.metric) for sample_id, line, outcome in found] == [
        (str(i), i, name) for i in range(1, 7) for name in RAG
    ]
    shown = table(done.stdout)
    assert list(shown) == list(RAG)
    for name in RAG:
        own = [outcome for _, _, outcome in found if outcome.metric == name]
        assert shown[name]["mean"] == f"{sum(each.value for each in own) / 6:.3f}"
        assert shown[name]["scored"] == "6/6"
    usage = [outcome.usage for *_, outcome in found]
    tokens_in, tokens_out = sum(each.input_tokens for each in usage), sum(each.output_tokens for each in usage)
    asked = [seen for seen in server.seen if seen.path.endswith("/chat/completions")]
    embedded = sum(each.embed_calls for each in usage)
    cost = f"{len(asked)} judge calls, {embedded} embedder calls, {tokens_in:,} tokens in, {tokens_out:,} tokens out"
    assert cost in done.stdout.splitlines()
    assert max(map(len, done.stdout.partition("the weakest metric")[0].splitlines())) <= 80
    assert server.max_in_flight <= 2


def test_fields_are_mapped_and_verdicts_explained(score, rows):
    given = rows({"q": "Who?", "source": "One. Two.", "text": "Ann.", "key": "k1"})
    fields = ("user_input=q", "retrieved_contexts=source", "response=text", "id=key")
    done = score(given, "--explain", "-v", *(arg for field in fields for arg in ("--field", field)))
    assert "k1  response_relevancy  " in done.stdout
    assert "\n    sentence 1: relevant: One.\n        [context 1 0-4]\n" in done.stdout


def test_standard_input_and_output_in_utf_8(score, rows):
    given = rows(row(1, response="é 中 😀 \u202e", id="中"), row(2))
    done = score("-", *ONE, "--out", "-", input=given.read_bytes())
    written = {json.loads(line)["id"] for line in done.stdout_bytes.splitlines()}
    assert written == {"中", "2"}  # in the order in which they ended
    assert table(done.stderr)["context_relevancy"]["scored"] == "2/2"


def test_nothing_that_a_terminal_obeys_reaches_it(score, rows):
    evil = "\x1b[35m \x1b]0;title\x07 \x9b2J \u202e x."
    bad = {"response": 1, "\x1b[2J": 1}
    done = score(rows(row(1, id=evil, retrieved_contexts=[evil]), bad, {"\x1b[2J": 1}), "--explain", color=True)
    shown = re.sub(r"\x1b\[(0|1|31|33)m", "", done.stdout + done.stderr)  # our own colours
    assert not [character for character in shown if not (character.isprintable() or character == "\n")]
    assert r"\x1b[35m" in shown


class TestBadLines:
    def test_they_are_reported_with_their_number_and_the_run_goes_on(self, score, rows):
        done = score(
            rows(b"[1]", row(2), b"{", b"", row(5), b"\xff", {"q": "Q?"}),
            *ONE,
            "--threshold",
            "1",
            "--out",
            os.devnull,
        )
        assert done.exit_code == 2
        assert without_fields(done.stderr).splitlines() == [
            "line 1: is list, not a Sample or a dict (skipped)",
            "line 3: not JSON: Expecting property name enclosed in double quotes at column 2 (skipped)",
            "line 6: not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte (skipped)",
            "line 7: none of a sample's fields has a value; the row has 'q': name them with --field FIELD=KEY (skipped)",
            "context_relevancy: below the threshold 1: its mean is 0.25",
            "4 lines held no sample; see above.",
        ]
        assert table(done.stdout)["context_relevancy"]["scored"] == "2/2"

    def test_a_missing_field_is_unscored_by_those_who_need_it_before_a_call(self, score, rows):
        given = rows({"user_input": "Q?", "response": "A."})
        limit = ("--threshold", "context_relevancy=0", "--out", os.devnull)
        every = [arg for name in ALL for arg in ("--metric", name)]
        done = score(given, *limit, *every)
        shown = table(done.stdout)
        needy = ALL - {"response_relevancy", "response_completeness", "alignment_coverage"}
        assert {name for name in ALL if shown[name]["scored"] == "0/1"} == needy
        figures = json.loads(score(given, *limit, *every, "--json").stdout)["metrics"]
        assert {figures[name]["usage"]["llm_calls"] for name in needy} == {0}
        assert (
            "unscored by context_relevancy: 1 missing_input; "
            "first: 1: retrieved_contexts: is missing; context_relevancy needs it\n"
        ) in done.stdout
        assert (done.exit_code, without_fields(done.stderr)) == (
            1,
            "context_relevancy: below the threshold 0: nothing was scored\n",
        )


def test_a_file_that_breaks_off_is_scored_as_far_as_it_goes(score, rows, out):
    whole = gzip.compress(rows(*(row(i, pad=os.urandom(500).hex()) for i in range(200))).read_bytes())
    broken = out.with_name("rows.jsonl.gz")
    broken.write_bytes(whole[:-100])
    done = score(broken, *ONE, "--out", out)
    assert done.exit_code == 2
    assert done.stderr.endswith("cannot be read: Compressed file ended before the end-of-stream marker was reached\n")
    assert table(done.stdout)["context_relevancy"]["scored"] == f"{len(results(out))}/{len(results(out))}"


@pytest.mark.parametrize(("rate", "code"), [(["0.4"], 0), (["0.6"], 1), (["context_relevancy=0.5"], 0)])
def test_the_share_that_passes_is_held_against_the_pass_rate(score, rows, out, rate, code):
    """Two samples, of which one reaches the threshold; the mean, which does not, is not looked at."""
    given = rows(row(1), row(2, retrieved_contexts=["Ann 2 wrote book 2."]))
    args = (*ONE, "--threshold", "0.9", *(arg for each in rate for arg in ("--pass-rate", each)), "--out", out)
    done = score(given, *args, "--json")
    printed = json.loads(done.stdout)["metrics"]["context_relevancy"]
    assert printed["passed"] == 0.5, printed
    assert printed["scored"] == 2
    assert done.exit_code == code
    assert ("below the pass rate 0.6: 50.0 % reach 0.9" in done.stderr) == bool(code)


@pytest.mark.parametrize(("given", "code"), [(["0.25"], 0), (["0.2500001"], 1), (["context_relevancy=0.2", "0.9"], 0)])
def test_the_mean_is_held_against_the_threshold(score, rows, out, given, code):
    done = score(rows(row(1)), *ONE, *(arg for each in given for arg in ("--threshold", each)), "--out", out)
    assert done.exit_code == code
    assert ("context_relevancy: below the threshold " in done.stderr) == bool(code)
    assert results(out)[0][2].passed == (not code)


def test_what_is_as_good_as_its_limit_but_for_the_rounding_of_its_sum_reaches_it(score, rows, out):
    given = rows(row(1, retrieved_contexts=["Ann 1 wrote book 1."]), *(row(each) for each in (2, 3, 4, 5)))
    done = score(given, *ONE, "--threshold", "0.9", "--pass-rate", "0.2", "--out", out, "--json")
    assert json.loads(done.stdout)["metrics"]["context_relevancy"]["passed"] == pytest.approx(0.2)
    assert (done.exit_code, without_fields(done.stderr)) == (0, "")


class TestFailingJudge:
    def test_every_row_says_so(self, score, six, server, out):
        server.reply = lambda body: error(400, "out of\x1b[31m order")
        done = score(six, *ONE, "--out", out)
        assert done.exit_code == 1
        assert "unscored by context_relevancy: 6 judge_error; first: 1: BadRequestError: " in done.stdout
        assert r"out of\x1b[31m order" in done.stdout
        assert without_fields(done.stderr).startswith("Nothing could be scored; the table says why.")
        assert {outcome.reason for _, _, outcome in results(out)} == {"judge_error"}

    def test_it_is_given_up_when_the_first_call_is_refused_for_good(self, score, rows, server):
        server.reply = lambda body: error(401, "not with this key")
        done = score(rows(*(row(i) for i in range(200))), *ONE, "--concurrency", 4, "--out", os.devnull)
        assert (done.exit_code, len(server.bodies) <= 10) == (1, True)
        assert done.stdout.count("not with this key") == 1
        named = f"name it openai:{MODEL} and set OPENAI_BASE_URL={server.url} and OPENAI_API_KEY"
        assert f"Gave up: the judge OpenAICompatible('{MODEL}', base_url='{server.url}') refused" in done.stdout
        assert (named in done.stdout, without_fields(done.stderr)) == (True, "Gave up: the table says why.\n")


def test_limits_leave_a_rest_that_resumes_and_money_is_in_the_table(score, six, server, out):
    command = (six, *ONE, "--max-calls", "4", "--price", "1", "2", "--journal", out.with_suffix(".db"), "--out", out)
    first, second = score(*command), score(*command)
    assert table(first.stdout)["context_relevancy"]["scored"] == "4/6"
    assert "unscored by context_relevancy: 2 over_budget; first: 5: max_calls: the budget has no room" in first.stdout
    tokens_in, tokens_out, cost = re.search(r"(\d+) tokens in, (\d+) tokens out, cost (.*)", second.stdout).groups()
    spent = (int(tokens_in) + 2 * int(tokens_out)) / 1e6
    assert (table(second.stdout)["context_relevancy"]["scored"], cost) == ("6/6", f"{spent:.4f}")
    assert sum(seen.path.endswith("/chat/completions") for seen in server.seen) == 6
    for more in ((), ("--dry-run",)):
        unpriced = score(six, *ONE, "--max-cost", "1", *more)
        assert (unpriced.exit_code, "--max-cost: needs --price IN OUT" in unpriced.stderr) == (2, True)


class TestOutput:
    def test_without_a_name_results_go_to_a_new_file_of_the_current_folder(
        self, score, run, six, tmp_path, monkeypatch
    ):
        monkeypatch.setattr("time.strftime", lambda form: form.replace("%Y%m%d-%H%M%S", "now"))
        for name in ("ragstone-results-now.jsonl", "ragstone-results-now-2.jsonl"):
            done = score(six, *ONE)
            assert without_fields(done.stderr) == f"Results: {name}\nNext: ragstone explain {name}\n"
            assert len(results(tmp_path / name)) == 6
        assert run("explain", "ragstone-results-now.jsonl").exit_code == 0
        (tmp_path / "empty.jsonl").touch()
        assert (score(tmp_path / "empty.jsonl").exit_code, len(list(tmp_path.glob("ragstone-*")))) == (2, 2)

    @pytest.mark.parametrize("more", [(), ("-v",), ("--explain",)])
    def test_how_much_is_printed(self, score, rows, more):
        lines = without_fields(score(rows(row(1)), *ONE, *more, "--out", os.devnull).output).splitlines()
        head = {
            (): [],
            ("-v",): ["1  context_relevancy 0.25"],
            ("--explain",): [
                "question: Who wrote book 1?",
                "response: Ann 1 did.",
                "1  context_relevancy  0.250",
                "    The question needs 1 of 4 sentences, from 1 of 2 contexts.",
            ],
        }[more]
        assert lines[: len(head)] == head
        assert len(lines) == {(): 6, ("-v",): 7, ("--explain",): 14}[more]

    def test_an_earlier_file_is_replaced_from_the_first_result_on(self, score, six, out):
        for before in (None, b"paid for\n" * 1000):
            if before:
                out.write_bytes(before)
            assert score(six, *ONE, "--field", "response=bar", "--out", out).exit_code == 2
            assert score(six, "--llm", "http://127.0.0.1:9", "--out", out).exit_code == 2
            assert (out.read_bytes() if out.exists() else None) == before
        score(six, *ONE, "--out", out)
        assert len(results(out)) == 6

    @pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
    def test_a_full_disk_ends_the_run_with_the_table(self, score, six):
        done = score(six, *ONE, "--out", FULL)
        assert done.exit_code == 2
        assert "context_relevancy" in table(done.stdout)
        assert done.stderr.endswith("Error: --out /dev/full: cannot write: No space left on device\n")


@pytest.mark.usefixtures("untraced")
def test_ctrl_c_prints_the_table_of_what_was_scored_and_says_how_to_go_on(score, rows, server, out, tmp_path):
    def reply(body):
        if "book 3" in str(body):
            os.kill(os.getpid(), signal.SIGINT)
        return answer(body)

    server.reply = reply
    journal, given = tmp_path / "j.db", rows(*(row(i) for i in range(30)))
    done = score(given, *ONE, "--concurrency", "1", "--out", out, "--journal", journal)
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == (
        f"Interrupted: these are the scores so far. Run the same command again to go on from there: {journal} has it."
    )
    written = len(results(out))
    assert 4 <= written <= 5  # what was in flight has been finished
    assert table(done.stdout)["context_relevancy"]["scored"] == f"{written}/{written}"
    server.reply = answer
    assert score(given, *ONE, "--journal", journal, "--out", out).exit_code == 0
    assert len(results(out)) == sum(seen.path.endswith("/chat/completions") for seen in server.seen) == 30


def test_asking_is_for_all_metrics_and_set_goes_before_it(score, rows):
    for more, calls in (((), "6 judge calls,"), (("--set", "context_relevancy.asking=together"), "1 judge call,")):
        done = score(rows(row(1)), *ONE, "--asking", "one_by_one", *more)
        assert f"\n{calls}" in done.stdout


POLITE = """
from dataclasses import dataclass
from ragstone.results.record import decode_rows
from ragstone import LLMRequest, Metric
from ragstone.judging import ask

@dataclass(frozen=True, kw_only=True)
class Polite(Metric):
    name = "polite"
    version = "1"
    required_fields = ("response",)
    word: str = "please"

    def _flow(self, sample):
        yield from ask(LLMRequest("polite.ask", "", self.word, {}), lambda reply: reply.text)
        return self._score(1.0, reason="so it is", verdicts=())
"""


def test_a_metric_of_the_user_s_own_is_found_in_the_current_folder(
    score, run, rows, server, out, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_metrics.py").write_text(POLITE)
    server.reply = lambda body: body["messages"][-1]["content"]
    own = ("--metric", "my_metrics:Polite", "--set", "polite.word=thanks", "--threshold", "polite=0.5")
    assert score(rows(row(1)), *own, "--out", out).exit_code == 0
    assert "thanks" in str(server.bodies[-1])
    assert "\n1  polite  1.000  passed\n" in run("explain", out, "--metric", "my_metrics:Polite").stdout
    assert run("compare", out, shutil.copy(out, tmp_path / "b.jsonl")).stdout.count("polite") >= 1
    assert f"B {out}: is A itself" in run("compare", out, out).stderr
    unknown = score(rows(row(1)), "--metric", "my_metrics:Rude")
    assert (unknown.exit_code, "my_metrics:Rude cannot be loaded" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("more", [(), ("--no-texts",)])
def test_samples_are_in_the_file_once_unless_they_are_left_out(score, rows, out, more):
    assert score(rows(row(1, key="k")), *ONE, "--metric", "response_relevancy", "--out", out, *more).exit_code == 0
    first, second = (json.loads(line) for line in out.read_text().splitlines()[1:])
    assert "sample" not in second
    assert (b"Ann 1 wrote it." in out.read_bytes(), "user_input" in first["sample"]) == (not more, not more)


def test_columns_that_hold_no_field_are_named(score, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,kontext,answer,colour\nWho?,Ann.,Ann.,red\n")
    done = score(path, "--metric", "faithfulness")
    assert done.exit_code == 1
    assert "row 1 also has 'kontext', 'colour': --field retrieved_contexts=kontext" in " ".join(done.output.split())
    assert "doctor" not in done.output
    done = score(path, "--metric", "faithfulness", "--field", "retrieved_contexts=kontext")
    assert "also has" not in done.output


def test_a_preset_by_name(score, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"input": "Who?", "reference": "Ann.", "output": "Ann."}\n')
    assert "1/1" in score(path, "--metric", "faithfulness", "--field", "phoenix").stdout


def test_rows_of_a_group_are_counted_together(score, tmp_path, server, out):
    path = tmp_path / "rows.csv"
    lines = [f'Who {i}?,"[""Ann {i}.""]",Ann.,d{i // 2}' for i in range(12)]
    path.write_text("\n".join(["question,contexts,answer,doc", *lines]))
    by_doc = (path, *ONE, "--field", "metadata=doc", "--out", out, "--group")
    done = score(*by_doc, "metadata.doc")
    assert (done.exit_code, "rows.csv: 12 rows of 6 docs\n" in done.stdout) == (0, True)
    assert b'"group":"doc=d5"' in out.read_bytes()
    asked = sum("messages" in body for body in server.bodies)
    done = score(*by_doc, "metadata.dok")
    assert (done.exit_code, sum("messages" in body for body in server.bodies)) == (2, asked)
    assert done.stderr.endswith("--group: no metadata.dok in the first 12 rows; they have metadata.doc\n")
