"""What may stand on the command line: each wrong value is named, with what may stand there, before anything is done."""

import click
import pytest

from ragstone.cli.options import parse_settings
from ragstone.cli.score import parse_limits
from ragstone.metrics.names import GROUPS

from .conftest import row


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("none.jsonl", "'none.jsonl': there is no such file"),
        ("- --metric bleu", "there is no metric 'bleu'; there are alignment_coverage"),
        ("- --metric rag --metric sumary", "Did you mean summary?"),
        ("- --metric rag --llm gpt-4o", "or module:function. Did you mean openai:gpt-4o, if it is"),
        ("- --metric faithfulness,rag", "several names; give each by itself: 'faithfulness' and 'rag'"),
        ("- --report a.pdf", "--report a.pdf: is written as .html, not as .pdf"),
        ("- --out a.csv", "--out a.csv: is written as .jsonl, not as .csv"),
        ("- -m rag", "Did you mean '--metric'?"),
        ("- --model gpt", "Did you mean '--llm'?"),
        ("- --judge gpt", "Did you mean '--llm'?"),
        ("- --metrics rag", "Did you mean '--metric'?"),
        ("- --field response=", "--field response=: write FIELD=KEY"),
        ("- --field q=response", "--field q=response: write it the other way round: --field response=q"),
        ("- --field answer=x", "FIELD one of user_input, retrieved_contexts, response, reference, reference_ids"),
        ("- --threshold nan", "--threshold nan: write X or METRIC=X"),
        ("- --threshold 2", "X is from -1 to 1 for response_relevancy"),
        ("- --metric faithfulness --threshold 70", "X is from 0 to 1 for faithfulness; did you mean 0.7?"),
        ("- --threshold -0.5", "X is from 0 to 1 for response_completeness"),
        ("- --metric context_relevancy --threshold response_relevancy=0.5", "METRIC one of context_relevancy"),
        ("- --set strictness=2", "--set strictness=2: write METRIC.OPTION=VALUE"),
        ("- --set response_relevancy.llm=2", "has no option 'llm'; it has asking, instructions, max_characters"),
        ("- --dry-run --price 1 inf", "Invalid value for '--price': inf is not a finite number."),
        ("- --dry-run --price nan 2", "Invalid value for '--price': nan is not a finite number."),
        (
            "- --metric summary --set summarization_score.coeff=2",
            "summarization_score.coeff: 2 should be less than or equal to 1",
        ),
        ("- --rpm 0", "Invalid value for '--rpm'"),
        ("- --tpm nan", "Invalid value for '--tpm'"),
        ("- --call-timeout 0", "Invalid value for '--call-timeout'"),
        ("- --sample-timeout nan", "Invalid value for '--sample-timeout'"),
        ("- --pass-rate 0.9", "--pass-rate: response_relevancy has no threshold; add --threshold response_relevancy=X"),
        ("- --pass-rate 2 --threshold 0", "--pass-rate 2: X is from 0 to 1 for response_relevancy"),
        ("- --json --explain", "--explain and --json both write to standard output"),
        ("- --out - --explain", "--out - and --explain both write to standard output"),
    ],
)
def test_wrong(run, arguments, message):
    line = '{"question": "Q?", "contexts": ["C."], "answer": "A."}'
    done = run("score", "--llm", "http://127.0.0.1:9", *arguments.split(), input=line)  # nobody is there: another error
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_commands_of_other_tools(run):
    for command, meant in (("evaluate", "Did you mean score?"), ("run", "Did you mean score?"), ("frobnicate", "")):
        done = run(command, "x")
        assert (done.exit_code, meant in done.stderr, "Did you mean" in done.stderr) == (2, True, bool(meant))


def test_settings_take_effect(score, rows):
    settings = (
        "response_relevancy.strictness=2",
        'summarization_score.questions=["Is it a novel?"]',
        "context_relevancy.granularity=chunk",
    )
    groups = ("--metric", "rag", "--metric", "summarization_score")
    done = score(rows(row(1)), "--explain", "-v", *groups, *(arg for each in settings for arg in ("--set", each)))
    assert done.exit_code == 0
    assert "question 1: yes: Is it a novel?" in done.stdout
    assert "question 2: " in done.stdout
    assert "question 3: " not in done.stdout
    assert "1  context_relevancy  0.500" in done.stdout


def test_a_groups_options_are_its_metrics_and_give_way_to_a_metrics_own():
    rag, summary = GROUPS["rag"], GROUPS["summary"]
    given = ["faithfulness=0.9", "rag=0.7", "0.5"]
    bounds = dict.fromkeys([*rag, *summary], (0.0, 1.0))
    assert parse_limits("--threshold", given, bounds) == {
        **dict.fromkeys(rag, 0.7), **dict.fromkeys(summary, 0.5), "faithfulness": 0.9,
    }  # fmt: skip
    options = parse_settings(["summary.asking=together", "alignment_coverage.n_questions=3"], ["summary"])
    assert options == {
        "summarization_score": {"asking": "together"},
        "alignment_coverage": {"source": "retrieved_contexts", "asking": "together", "n_questions": 3},
    }
    with pytest.raises(click.UsageError, match="METRIC one of context_relevancy"):
        parse_limits("--threshold", ["rag=0.7"], {"context_relevancy": (0.0, 1.0)})
    with pytest.raises(click.UsageError, match="METRIC one of context_relevancy"):
        parse_settings(["rag.asking=together"], ["context_relevancy"])
