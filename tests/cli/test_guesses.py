"""Options and commands that other tools have: the right guess or none."""

import pytest


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["score", "x", "--model", "gpt"], "Did you mean '--llm'?"),
        (["score", "x", "--judge", "gpt"], "Did you mean '--llm'?"),
        (["score", "x", "--metrics", "rag"], "Did you mean '--metric'?"),
        (["evaluate", "x"], "Did you mean score?"),
        (["run", "x"], "Did you mean score?"),
        (["frobnicate"], None),
    ],
)
def test_guesses(run, command, meant):
    done = run(*command)
    assert done.exit_code == 2
    assert (meant is None and "Did you mean" not in done.stderr) or meant in done.stderr
