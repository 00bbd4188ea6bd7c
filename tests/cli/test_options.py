"""What may stand on the command line: each wrong value is named, with what may stand there, before anything is done."""

import re

import pytest
from click import UsageError

from ragstone.cli.main import cli
from ragstone.cli.metrics import METRICS, parse_settings, parse_thresholds

from .conftest import row


def test_every_command_of_the_listing_has_help(run):
    listing = run("--help")
    names = re.findall(r"^  (\w+)  +\S.*[^.]\.$", listing.stdout.partition("Commands:")[2], re.MULTILINE)
    all_of_them = ["calibrate", "compare", "doctor", "explain", "pull", "report", "score", "worker"]
    assert sorted(names) == sorted(cli.commands) == all_of_them
    for name in names:
        shown = run(name, "-h").stdout
        assert re.match(rf"Usage: (ragstone|cli) {name} ", shown)
        assert "\\b" not in shown
        if name in ("score", "worker"):  # the exit statuses stand in lines of their own
            assert re.search(r"\n    0    \w.*\n(.*\n)+    130  interrupted", shown)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("none.jsonl", "'none.jsonl' does not exist"),
        ("- --metric bleu", "'bleu' is not one of 'summarization_score'"),
        ("- --field response=", "--field response=: write FIELD=KEY"),
        ("- --field answer=x", "FIELD one of user_input, retrieved_contexts, response, id"),
        ("- --threshold nan", "--threshold nan: write X or METRIC=X"),
        ("- --threshold 2", "X from -1 to 1"),
        ("- --metric context_relevancy --threshold response_relevancy=0.5", "METRIC one of context_relevancy"),
        ("- --set strictness=2", "--set strictness=2: write METRIC.OPTION=VALUE"),
        ("- --set response_relevancy.llm=2", "has no option 'llm'; it has asking, instructions, max_characters"),
        ("- --set response_relevancy.strictness=2.5", "strictness=2.5: Input should be a valid integer"),
        ('- --set summarization_score.questions=["a', 'questions=["a: not JSON: Unterminated string starting at'),
        ("- --concurrency 0", "0 is not in the range x>=1"),
        ("- --dry-run --price nan 2", "Invalid value for '--price': nan is not a finite number."),
        ("- --dry-run --price -1 1", "-1.0 is not in the range x>=0"),
        ("- --price 1 1", "--price: is for --dry-run"),
        ("- --out - --explain", "both write to standard output; name a file for --out"),
    ],
)
def test_wrong(run, arguments, message):
    done = run("score", *arguments.split(), "--llm", "http://127.0.0.1:9")  # nobody is there: another error
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--set", "summarization_score.coeff=2", "summarization_score: coeff: 2.0 is not a number from 0 to 1"),
        ("--set", "context_relevancy.language=xx", "context_relevancy: no sentence splitter for language 'xx'"),
        ("--threshold", "context_relevancy=-0.5", "context_relevancy: threshold: -0.5 is not a number from 0 to 1"),
    ],
)
def test_impossible_values(score, six, option, value, message):
    done = score(six, option, value)
    assert done.exit_code == 2
    assert message in done.stderr


def test_settings_take_effect(score, rows):
    settings = (
        "response_relevancy.strictness=2",
        'summarization_score.questions=["Is it a novel?"]',
        "context_relevancy.granularity=chunk",
    )
    done = score(rows(row(1)), "--explain", *(arg for each in settings for arg in ("--set", each)))
    assert done.exit_code == 0
    assert "question 1: yes: Is it a novel?" in done.stdout
    assert "The 2 question(s) made from the response" in done.stdout
    assert "1  context_relevancy  0.500" in done.stdout


def test_settings_are_json_or_text_and_a_metrics_own_threshold_goes_before_that_of_all():
    options = parse_settings(["context_relevancy.language=de", "summarization_score.coeff=1"], METRICS)
    assert (options["context_relevancy"], options["summarization_score"]) == ({"language": "de"}, {"coeff": 1.0})
    for given in (["a=0.7", "0.5"], ["0.5", "a=0.7"]):
        assert parse_thresholds(given, ["a", "b"]) == {"a": 0.7, "b": 0.5}
    with pytest.raises(UsageError):
        parse_thresholds([""], ["a"])
