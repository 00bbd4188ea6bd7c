"""Keys: the same for the same, different for what could change an outcome, and the same for years."""

import dataclasses
import enum
import functools
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragstone
from ragstone import (
    ContextRelevancy,
    LLMRequest,
    Metric,
    Sample,
)
from ragstone.identity import NoKeyError, metric_key, outcome_key, reply_key, sample_key
from ragstone.testing import FakeEmbedder, FakeLLM

LLM = FakeLLM("yes")
TEXTS = {"user_input": "Why?", "retrieved_contexts": ["Because.", "So."], "response": "Thus."}
SAMPLE = Sample(**TEXTS)
REQUEST = LLMRequest(
    task="demo.ask", system="Answer.", user="Is it?", schema={"type": "object"}, temperature=0.5, sample_index=2
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Own(Metric):
    name, version, required_fields = "own", "1", ("response",)
    option: object = None

    def _flow(self, sample):
        yield ()
        return self._score(1.0, "")


def own(option):
    return metric_key(Own(llm=LLM, option=option))


GOLDEN = """
from ragstone import *
from ragstone.identity import *
from ragstone.testing import *
llm = FakeLLM(lambda request: "yes")
sample = Sample(user_input="Why, \\U0001f44d?", retrieved_contexts=["Because.", "So.\\x00"], response="Thus.")
print(sample_key(sample), metric_key(AlignmentCoverage(llm=llm, assessment_questions=["A?"], threshold=0.7)))
own = ContextRelevancy(llm=llm, instructions={"sentences": "Choose."})
print(outcome_key(sample_key(sample), metric_key(own)))
print(reply_key(LLMRequest("a.b", "s", "u", {"b": 1, "a": [2.5]}, 0.1, 4, ("x", "y")), "m"))
from tests_option import *
print(metric_key(Own(llm=llm, option={"words": {"a", "b", "c", "d"}, "more": frozenset([1, 2.5, None])})))
"""
OPTION = """
import dataclasses
from ragstone import Metric
@dataclasses.dataclass(frozen=True, kw_only=True)
class Own(Metric):
    name, version, required_fields = "own", "1", ("response",)
    option: object = None
    def _flow(self, sample): yield ()
"""


def test_keys_of_another_process_are_those_that_they_always_were(tmp_path):
    """A journal of today must serve the ragstone of next year: these change only with a reason, and the changelog."""
    (tmp_path / "tests_option.py").write_text(OPTION)
    paths = os.pathsep.join([str(Path(ragstone.__file__).parents[1]), str(tmp_path)])
    environ = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", GOLDEN], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "ad41f04773899c7515279bfbe27dddbc",
        "c8fca9862e42af6a611713cb077ac552",
        "496d9911493e0044c2f78a1f198783db",
        "057af317791aad4aef307d52eb515f1c",
        "18ed8686cd787c15b58f9fa1956c1ead",
    ]


# --- samples --------------------------------------------------------------------------------------------------------


def test_every_text_of_a_sample_counts_and_nothing_else():
    others = [
        {}, {"user_input": None}, {"user_input": ""}, {"response": None}, {"response": "Thus. "},
        {"user_input": "Thus.", "response": "Why?"}, {"retrieved_contexts": ["So.", "Because."]},
        {"retrieved_contexts": ["Because.So."]}, {"retrieved_contexts": ["Because.", "So.", ""]},
        {"retrieved_contexts": []},  # "empty_input"
        {"retrieved_contexts": None},  # "missing_input"
        {"reference": "So."}, {"reference": "Thus."}, {"history": [{"role": "user", "content": "So."}]},
    ]  # fmt: skip
    assert len({sample_key(Sample(**TEXTS | other)) for other in others}) == len(others)
    assert sample_key(Sample(response="A.", retrieved_contexts=None)) == sample_key(Sample(response="A."))
    other = Sample(**dict(reversed(TEXTS.items())), id="x", metadata={"a": object()})
    assert sample_key(other) == sample_key(SAMPLE)


HOSTILE = st.text(st.characters() | st.sampled_from('\x00\ud83d\udc4d"\\[],'), max_size=6)


# --- metrics --------------------------------------------------------------------------------------------------------


def test_an_embedder_that_ranks_sentences_counts():
    judge = FakeLLM("", asking="one_by_one", gives_probabilities=True)
    embedders = None, FakeEmbedder(dim=5), FakeEmbedder(dim=6)
    assert len({metric_key(ContextRelevancy(llm=judge, embedder=embedder)) for embedder in embedders}) == 3


def test_name_version_and_judge_count():
    class Renamed(Own):
        name = "own2"

    class Newer(Own):
        version = "2"

    Renamed.__qualname__ = Newer.__qualname__ = Own.__qualname__
    keys = {metric_key(kind(llm=LLM)) for kind in (Own, Renamed, Newer)}
    keys |= {metric_key(Own(llm=FakeLLM("", **facts))) for facts in ({"model": "x"}, {"asking": "one_by_one"})}
    assert len(keys) == 5


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Part:
    a: object
    b: object = 1


class Named:
    def __init__(self, cache_key):
        self.cache_key = cache_key

    def method(self):
        pass


def one_function():
    return 1


def other_function():
    return 1


DIFFERENT = [
    None, True, 1, 1.5, "1", "", [], {}, [1], [[1]], {"1": 1}, float("inf"), Colour.BLUE, Part(1), Part(2), Part,
    Named("1"), Named("2"), one_function, other_function, len, max, LLM, SAMPLE, FakeLLM(one_function, model="another"),
]  # fmt: skip


def test_different_options_have_different_keys():
    keys = [own(option) for option in DIFFERENT]
    assert len(set(keys)) == len(DIFFERENT)
    assert keys == [own(option) for option in DIFFERENT]


def test_equal_options_have_one_key():
    for one, same in [
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}),
        ({"b", "a", "c"}, {"c", "b", "a"}),
        ([1, 2], (1, 2)),
        (np.float64(1.5), 1.5),
        (Part([1]), Part((1,))),
        (Named("1"), Named("1")),
    ]:
        assert own(one) == own(same)


def test_what_no_other_process_could_know_is_refused():
    around = []
    around.append(around)
    for option in (lambda: 1, object(), functools.partial(len), Named("1").method, re.compile("a"), around):
        with pytest.raises(NoKeyError, match=r"^own\.option: is .*cache_key"):
            own(option)
    with pytest.raises(NoKeyError, match=r"own\.option: is or holds object"):
        own({"a": [1, object()]})


# --- outcomes and replies -------------------------------------------------------------------------------------------


def test_sample_and_metric_count():
    metrics = map(metric_key, (Own(llm=LLM), ContextRelevancy(llm=LLM)))
    samples = map(sample_key, (SAMPLE, Sample(response="Other.")))
    assert len({outcome_key(sample, metric) for sample, metric in product(samples, metrics)}) == 4


def test_all_of_a_request_counts_and_so_does_the_judge():
    others = [
        {"task": "demo.other"}, {"system": "Answer!"}, {"user": "Is it?\x00"}, {"temperature": 0.6}, {"sample_index": 3},
        {"choices": ()}, {"choices": ("yes", "no")}, {"choices": ("no", "yes")}, {"schema": {"type": "string"}},
        {"schema": {"a": 1, "b": 2}},  # a judge writes in that order: evidence first is another question
        {"schema": {"b": 2, "a": 1}},
    ]  # fmt: skip
    keys = {reply_key(replace(REQUEST, **other), "m") for other in others}
    keys |= {reply_key(replace(REQUEST, sample_index=i), m) for i in (0, 1) for m in ("m", "n")}
    assert len(keys) == len(others) + 4


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_where_one_text_ends_and_the_next_begins_counts(a, b, c, d):
    keys = [reply_key(replace(REQUEST, system=system, user=user), "m") for system, user in ((a, b), (c, d))]
    assert (keys[0] == keys[1]) == ((a, b) == (c, d))
