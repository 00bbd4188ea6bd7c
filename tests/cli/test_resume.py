"""A results file resumes: after Ctrl-C and after kill -9 nothing is paid twice, and nothing that was there is lost."""

import json
import re
import signal
import threading
from collections import Counter
from operator import itemgetter

import pytest

from ragstone import Limits, evaluate
from ragstone.batch.run import Interrupted
from ragstone.report import Report

from ..support.openai_server import error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import answer, row

ONE = ("--metric", "context_relevancy", "--asking", "together")


class Counting:
    """A judge that counts what it is asked; when it has answered so many calls, the next one waits."""

    def __init__(self, server):
        self.asked: Counter[str] = Counter()
        self.left = 0
        self.waits, self.goes_on = threading.Event(), threading.Event()
        server.reply = self.reply

    def reply(self, body):
        self.left -= 1
        if self.left < 0:
            self.waits.set()
            assert self.goes_on.wait(30)
        self.asked[re.search(r"Who wrote book \d+", json.dumps(body))[0]] += 1
        return answer(body)


def lines(path):
    return sorted((json.loads(line) for line in path.read_text().splitlines()[1:]), key=itemgetter("row"))


def outcomes(path):
    return {(line["row"], line["metric"]): line.get("value") for line in lines(path)}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_judged_before_the_end_is_not_judged_again(how, process, server, score, rows, tmp_path):
    given, out, whole = rows(*(row(i) for i in range(9))), tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    assert score(given, *ONE, "--out", whole).exit_code == 0
    judge = Counting(server)
    for again in ((), ("--resume", out), ("--resume", out)):
        judge.left = 2
        command = process("score", given, "--out", out, "--llm", server.url, *ONE, "--concurrency", "1", *again)
        assert judge.waits.wait(30)
        command.send_signal(how)
        if how == signal.SIGINT:
            assert b"in flight" in next(line for line in command.stderr if b"Finishing" in line)
        else:
            command.wait()
        judge.goes_on.set()
        _, errors = command.communicate()
        judge.waits.clear()
        judge.goes_on.clear()
        if how == signal.SIGINT:
            done = len({line["row"] for line in lines(out)})
            assert f"Run again with --resume {out}: {done} of 9 are done.\n" in errors.decode()
    judge.left = 1_000
    assert score(given, *ONE, "--resume", out).exit_code == 0
    assert outcomes(out) == outcomes(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "rows.jsonl", "whole.jsonl"]
    # What was in flight when a run was killed is paid for, and nobody knows what came of it.
    assert sum(judge.asked.values()) - len(judge.asked) <= (0 if how == signal.SIGINT else 3)
    assert len(judge.asked) == 9


def test_only_what_changed_or_failed_outside_is_asked_again(score, rows, server, tmp_path):
    out = tmp_path / "out.jsonl"
    server.reply = lambda body: error(400, "no") if "Book 3 " in json.dumps(body) else answer(body)
    given = rows(*(row(i, id=f"q{i}") for i in range(4)))
    score(given, *ONE, "--out", out, "--threshold", "0.9")
    server.reply = answer
    assert lines(out)[3]["status"] == "unscored"
    before = len(server.seen)
    changed = rows(row(0, id="q0"), row(9, id="q1"), row(2, id="q2"), row(3, id="q3"), row(4, id="q4"))
    new = ("--out", tmp_path / "new.jsonl")
    done = score(changed, *ONE, "--resume", out, "--threshold", "0.1", *new)
    asked = [seen for seen in server.seen[before:] if seen.path.endswith("/chat/completions")]
    assert [
        "Book 9 " in str(seen.body) or "Book 3 " in str(seen.body) or "Book 4 " in str(seen.body) for seen in asked
    ] == [True] * 3
    assert "2 of an earlier run" in done.stdout
    assert [line["passed"] for line in lines(new[1])] == [True] * 5, "by the new threshold"
    assert [line["id"] for line in lines(new[1])] == ["q0", "q1", "q2", "q3", "q4"]
    before = len(server.seen)
    score(changed, *ONE, "--resume", new[1], "--set", "context_relevancy.granularity=chunk")
    assert sum(seen.path.endswith("/chat/completions") for seen in server.seen[before:]) == 5


def test_a_file_keeps_what_a_run_that_goes_on_from_it_has_not(score, rows, server, tmp_path):
    out, other = tmp_path / "out.jsonl", ("--metric", "retrieval_rank")
    score(rows(row(0, id="a"), row(1, id="b")), *ONE, "--out", out)
    score(rows(row(1, id="b"), row(2, id="c")), *ONE, "--resume", out)
    assert [line["id"] for line in lines(out)] == ["a", "b", "c"]
    score(rows(row(1, id="b")), *other, "--resume", out)
    assert [Report.load(out)[name].total for name in ("context_relevancy", "retrieval_rank")] == [3, 1]
    assert Report.load(out).aggregates().rows == 3
    before = out.read_bytes()
    done = score(rows(row(7, id="c")), *ONE, "--resume", out)
    assert re.search(
        r"out\.jsonl: has other texts of samples that rows\.jsonl has, too; it stays as it is", done.stderr
    )
    (new,) = tmp_path.glob("ragstone-results-*.jsonl")
    assert ([line["id"] for line in lines(new)], out.read_bytes()) == (["c"], before)
    assert f"explain {new.name}" in done.stderr


def test_a_judge_with_other_settings_is_said(score, rows, server, tmp_path):
    given, out = rows(row(0)), tmp_path / "out.jsonl"
    score(given, *ONE, "--out", out)
    assert "other settings" not in score(given, *ONE, "--resume", out).stderr
    hot = score(given, *ONE, "--resume", out, "--llm", f"{server.url}?temperature=0.9")
    assert "the judge of context_relevancy has other settings, or another server, than in that file" in hot.stderr


def test_what_has_no_texts_says_that_it_cannot_be_resumed(score, rows, tmp_path):
    given, out = rows(row(0)), tmp_path / "out.jsonl"
    score(given, *ONE, "--out", out, "--no-texts")
    done = score(given, *ONE, "--resume", out)
    assert (done.exit_code, len(lines(out))) == (2, 1)
    assert re.search(r"out\.jsonl: has no texts .*cannot be resumed", done.stderr)
    assert score(given, *ONE, "--resume", tmp_path / "none.jsonl").exit_code == 2


def test_a_frame_is_resumed_into_a_file_of_its_own(score, rows, server, tmp_path):
    given, frame = rows(row(0), row(1)), tmp_path / "frame.parquet"
    score(given, *ONE, "--out", tmp_path / "out.jsonl")
    Report.load(tmp_path / "out.jsonl").to_parquet(frame)
    before, server.reply = frame.read_bytes(), lambda body: error(400, "no")
    assert score(given, *ONE, "--resume", frame, "--out", tmp_path / "new.jsonl").exit_code == 0
    assert (outcomes(tmp_path / "new.jsonl"), frame.read_bytes()) == (outcomes(tmp_path / "out.jsonl"), before)


def test_in_python_a_report_is_gone_on_from():
    from ragstone import ContextRelevancy
    from ragstone.testing import FakeLLM

    def interrupted(request):
        if len(llm.requests) == 3:
            signal.raise_signal(signal.SIGINT)
        return {"ids": [1]}

    llm = FakeLLM(interrupted)
    samples = [{"id": str(i), "question": f"Who {i}?", "contexts": [f"Ann {i}. Bob."]} for i in range(6)]
    with pytest.raises(Interrupted, match="resume=") as caught:
        evaluate(samples, ContextRelevancy(llm=llm), progress=False, limits=Limits(max_concurrency=1))
    whole = evaluate(samples, ContextRelevancy(llm=llm), progress=False, resume=caught.value.report)
    assert (len(llm.requests), [record.row for record in whole]) == (6, list(range(6)))


def test_a_run_that_gives_up_keeps_what_it_did_not_come_to(score, rows, server, tmp_path):
    out = tmp_path / "out.jsonl"
    score(rows(*(row(i, id=f"q{i}") for i in range(40))), *ONE, "--out", out)
    before = {line["id"]: line["value"] for line in lines(out)}
    server.reply = lambda body: error(401, "no such key")
    again = rows(*(row(i, id=f"q{i}") for i in range(90, 100)), *(row(i, id=f"q{i}") for i in range(40)))
    assert score(again, *ONE, "--resume", out, "--concurrency", "1").exit_code == 1
    assert {line["id"]: line["value"] for line in lines(out) if "value" in line} == before
