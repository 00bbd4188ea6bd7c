"""What may stand on the command line: each wrong value is named, with what may stand there, before anything is done."""

import re

import pytest
from click import UsageError

from ragstone.cli.main import cli
from ragstone.cli.metrics import METRICS, parse_settings, parse_thresholds

from .conftest import row


def test_every_command_of_the_listing_has_help(run):
    listing = run("--help")
    assert listing.exit_code == 0
    names = re.findall(r"^  (\w+)  +\S.*[^.]\.$", listing.stdout.partition("Commands:")[2], re.MULTILINE)
    all_of_them = ["calibrate", "compare", "doctor", "explain", "pull", "report", "score", "worker"]
    assert sorted(names) == sorted(cli.commands) == all_of_them
    for name in names:
        done = run(name, "-h")
        assert done.exit_code == 0
        assert done.stdout.startswith(f"Usage: ragstone {name} ") or done.stdout.startswith(f"Usage: cli {name} ")
        assert "\\b" not in done.stdout


def test_the_exit_statuses_stand_in_lines_of_their_own(run):
    shown = run("score", "--help").stdout
    for status in ("0    done", "130  interrupted"):
        assert f"\n    {status}\n" in shown


def test_version(run):
    assert re.fullmatch(r"ragstone, version \d+\.\d+\.\d+\S*\n", run("--version").stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'FILE'"),
        (["none.jsonl"], "'none.jsonl' does not exist"),
        (["."], "'.' is a directory"),
        (["-", "--metric", "bleu"], "'bleu' is not one of 'summarization_score'"),
        (["-", "--field", "response"], "--field response: write FIELD=KEY"),
        (["-", "--field", "response="], "--field response=: write FIELD=KEY"),
        (["-", "--field", "answer=x"], "FIELD one of user_input, retrieved_contexts, response, id"),
        (["-", "--threshold", "high"], "--threshold high: write X or METRIC=X"),
        (["-", "--threshold", "nan"], "--threshold nan"),
        (["-", "--threshold", "2"], "X from -1 to 1"),
        (["-", "--threshold", "bleu=0.5"], "METRIC one of summarization_score"),
        (["-", "--metric", "context_relevancy", "--threshold", "response_relevancy=0.5"], "METRIC one of context_rel"),
        (["-", "--set", "strictness=2"], "--set strictness=2: write METRIC.OPTION=VALUE"),
        (["-", "--set", "response_relevancy.strictness"], "write METRIC.OPTION=VALUE"),
        (["-", "--set", "response_relevancy.n=2"], "has no option 'n'; it has asking, instructions, max_characters"),
        (["-", "--set", "response_relevancy.llm=2"], "has no option 'llm'"),
        (["-", "--set", "response_relevancy.strictness=two"], "strictness=two: Input should be a valid integer"),
        (["-", "--set", "response_relevancy.strictness=2.5"], "strictness=2.5: Input should be a valid integer"),
        (["-", "--set", "summarization_score.coeff=null"], "coeff=null: Input should be a valid number"),
        (["-", "--set", 'summarization_score.questions=["a'], 'questions=["a: not JSON: Unterminated string starting at'),
        (["-", "--set", "response_relevancy.asking=nicely"], "Input should be 'auto'; Input should be 'together' or"),
        (["-", "--concurrency", "0"], "0 is not in the range x>=1"),
        (["-", "--dry-run", "--price", "nan", "2"], "Invalid value for '--price': nan is not a finite number."),
        (["-", "--dry-run", "--price", "1", "inf"], "Invalid value for '--price': inf is not a finite number."),
        (["-", "--dry-run", "--price", "-1", "1"], "-1.0 is not in the range x>=0"),
        (["-", "--out", "-", "--explain"], "both write to standard output; name a file for --out"),
    ],
)  # fmt: skip
def test_wrong(run, arguments, message):
    done = run("score", *arguments, "--llm", "http://127.0.0.1:9")  # nobody is there: asking would be another error
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("response_relevancy.strictness=0", "response_relevancy: strictness"),
        ("summarization_score.coeff=2", "summarization_score: coeff: 2.0 is not a number from 0 to 1"),
        ("context_relevancy.language=xx", "context_relevancy: no sentence splitter for language 'xx'"),
        ("summarization_score.questions=[]", "summarization_score: questions: is empty"),
    ],
)
def test_impossible_values(score, six, option, message):
    done = score(six, "--set", option)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_threshold_beyond_a_metrics_bounds(score, six):
    done = score(six, "--threshold", "context_relevancy=-0.5")
    assert done.exit_code == 2
    assert "context_relevancy: threshold: -0.5 is not a number from 0 to 1" in done.stderr


def test_settings_take_effect(score, rows, server):
    settings = (
        "response_relevancy.strictness=2",
        "alignment_coverage.source=retrieved_contexts",
        'summarization_score.questions=["Is it a novel?"]',
        "context_relevancy.granularity=chunk",
    )
    done = score(rows(row(1)), "--explain", *(arg for each in settings for arg in ("--set", each)))
    assert done.exit_code == 0
    assert "question 1: yes: Is it a novel?" in done.stdout
    assert "The 2 question(s) made from the response" in done.stdout
    assert "1  context_relevancy  0.500" in done.stdout
    assert "[retrieved_contexts[0] 0-18] Book 1 is a novel." in done.stdout


def test_settings_are_json_or_text():
    settings = ["context_relevancy.language=de", "response_relevancy.strictness=1", "summarization_score.coeff=1"]
    options = parse_settings(settings, METRICS)
    assert options["context_relevancy"] == {"language": "de"}
    assert options["response_relevancy"] == {"strictness": 1}
    assert options["summarization_score"] == {"coeff": 1.0}
    assert options["alignment_coverage"] == {}


def test_a_metrics_own_threshold_goes_before_that_of_all():
    for given in (["a=0.7", "0.5"], ["0.5", "a=0.7"]):
        assert parse_thresholds(given, ["a", "b"]) == {"a": 0.7, "b": 0.5}
    with pytest.raises(UsageError):
        parse_thresholds([""], ["a"])
