"""A judge whose probability stands in the sentence, calibrations of it, and labelled samples."""

import re

from ragstone import ContextRelevancy, LLMReply, Sample
from ragstone.labels import Calibration
from ragstone.metrics.setup import prompts_digest
from ragstone.testing import FakeLLM

_SAID = re.compile(r"p(\d\.\d+)")


def reply(request):
    """Say yes with the probability that the sentence names: "... p0.25 ..."; of a whole passage with one half."""
    if request.choices is None:
        if request.task.endswith("questions"):
            return {"questions": ["Who did?"] * 3}
        raise AssertionError(request.task)
    data = request.user.rpartition("<sentence")[2] or request.user
    p = 0.5 if request.task.endswith("passage") else float(_SAID.search(data)[1])
    first, *others = request.choices
    shares = {first: p} | {word: (1.0 - p) / len(others) for word in others}
    return LLMReply(max(shares, key=shares.__getitem__), 10, 1, shares)


def judge(**more):
    return FakeLLM(reply, **{"asking": "one_by_one", "model": "scripted"} | more)


def relevancy(**more):
    return ContextRelevancy(**{"llm": judge()} | more)


def calibration(**more):
    """Of `relevancy()`: sentences by the judge alone, unless said otherwise."""
    facts = {
        "metric": "context_relevancy",
        "version": ContextRelevancy.version,
        "prompts": prompts_digest(relevancy()),
        "judge": "scripted",
        "item": "sentence",
        "weight": 1.0,
        "intercept": -2.0,
        "threshold": 0.3,
        "labels": 20,
        "samples": 10,
    }
    return Calibration(**facts | more)


def sample(*probabilities, question="Who did?"):
    text = " ".join(f"Ann did it p{p}." for p in probabilities)
    return Sample(user_input=question, retrieved_contexts=[text])
