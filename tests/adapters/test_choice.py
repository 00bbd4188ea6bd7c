"""One word out of a few, on tables."""

import math

import pytest

from ragstone.adapters.chat_models import choice_probabilities
from ragstone.judging.reply import choice_in

YES_NO = ("yes", "no")


def token(text, probability, *others):
    top = [{"token": t, "logprob": math.log(p) if p else -9999.0} for t, p in others]
    return {"token": text, "logprob": math.log(probability), "top_logprobs": top}


@pytest.mark.parametrize(
    ("text", "choices", "chosen"),
    [
        ("yes", YES_NO, "yes"),
        ('"NO"', YES_NO, "no"),
        ("\u201cNo.\u201d", YES_NO, "no"),
        ("**Yes.**", YES_NO, "yes"),
        ("__*no*__!", YES_NO, "no"),
        ('yes".', YES_NO, 'yes".'),  # the end of something quoted
        ("**yes", YES_NO, "**yes"),
        ("Answer: yes", YES_NO, "Answer: yes"),
        ("not sure", ("no", "not sure"), "not sure"),
        ("", YES_NO, ""),
        ("ja", YES_NO, "ja"),
        ("ｙｅｓ", YES_NO, "ｙｅｓ"),
        ("A", ("a", "A "), "a"),
        ("A", ("a", "A"), "A"),  # two that differ in case only: as it is
        ("\0yes", YES_NO, "\0yes"),
        ("STRASSE", ("straße",), "straße"),
    ],
)
def test_choose(text, choices, chosen):
    assert choice_in(text, choices) == chosen


@pytest.mark.parametrize(
    ("content", "choices", "expected"),
    [
        ([token("yes", 0.8, ("yes", 0.8), ("no", 0.2))], YES_NO, {"yes": 0.8, "no": 0.2}),
        # spellings are added up, strangers left out, the rest brought to 1
        (
            [token("Yes", 0.4, ("Yes", 0.4), (" yes", 0.1), ("y", 0.1), ("No", 0.2), ("Maybe", 0.2))],
            YES_NO,
            {"yes": 0.75, "no": 0.25},
        ),
        # space, quotes and markers first
        ([token(" ", 1.0), token('"', 1.0), token("**", 1.0), token("no", 0.5)], YES_NO, {"yes": 0.0, "no": 1.0}),
        ([token("▁yes", 0.6, ("▁yes", 0.6), ("Ġno", 0.3))], YES_NO, {"yes": 2 / 3, "no": 1 / 3}),
        # the drawn token need not be among the top ones
        ([token("no", 0.1, ("yes", 0.3))], YES_NO, {"yes": 0.75, "no": 0.25}),
        # a token that is one choice and begins another is the one that it is
        ([token("no", 0.6, ("no", 0.6), ("not", 0.2))], ("no", "not sure"), {"no": 0.75, "not sure": 0.25}),
        # tokens that begin several: told apart only if they hardly matter
        ([token("n", 0.9, ("n", 0.9), ("none", 0.1))], ("no", "none"), None),
        ([token("no", 0.97, ("no", 0.97), ("n", 0.03))], ("no", "none"), {"no": 1.0, "none": 0.0}),
        # only the first word counts
        ([token("The", 0.9), token("yes", 1.0)], YES_NO, None),
        ([token("yes", 1.0, ("yes", 1.0), ("no", 0.0))], YES_NO, {"yes": 1.0, "no": 0.0}),
        ([], YES_NO, None),
        ([{"token": "yes", "logprob": None}], YES_NO, None),
        ([{"token": "yes", "logprob": 900.0}], YES_NO, {"yes": 1.0, "no": 0.0}),
        ([{"token": None}, 7, "yes"], YES_NO, None),
    ],
)
def test_choice_probabilities(content, choices, expected):
    found = choice_probabilities({"content": content}, choices)
    assert found == (expected and pytest.approx(expected))
    assert found is None or list(found) == list(choices)


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, [], "x"])
def test_no_logprobs(logprobs):
    assert choice_probabilities(logprobs, YES_NO) is None
