"""Totals of outcomes."""

import pytest

from ragstone import Score, Unscored, Usage
from ragstone.batch import Summary


def scored(value, **usage):
    return Score(metric="m", value=value, reason="", version="1", usage=Usage(**usage))


def unscored(reason, detail="", **usage):
    return Unscored(metric="m", reason=reason, detail=detail, version="1", usage=Usage(**usage))


def test_what_is_unscored_enters_no_mean_but_costs():
    summary = Summary()
    for outcome in (scored(1.0, llm_calls=1), unscored("timeout", llm_calls=2), scored(0.5, embed_calls=1)):
        summary.add(outcome)
    assert summary.mean == pytest.approx(0.75)
    assert (summary.scored, summary.total) == (2, 3)
    assert (summary.usage.llm_calls, summary.usage.embed_calls) == (3, 1)


def test_the_first_failure_of_each_kind_is_kept():
    summary = Summary()
    summary.add(unscored("timeout", "60 s"), where="line 3")
    summary.add(unscored("timeout", "61 s"), where="line 4")
    summary.add(unscored("undefined", "0 of 0"))
    assert summary.failures == {"timeout": 2, "undefined": 1}
    assert summary.examples == {"timeout": "line 3: 60 s", "undefined": "0 of 0"}


def test_tokens_that_one_provider_does_not_tell_are_unknown_in_total():
    summary = Summary()
    summary.add(scored(1.0, input_tokens=5, output_tokens=3))
    summary.add(scored(1.0, input_tokens=None, output_tokens=3))
    assert (summary.usage.input_tokens, summary.usage.output_tokens) == (None, 6)
