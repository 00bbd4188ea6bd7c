"""One sample, in the plain values that every form of it is made of, and a metric that needs all of it."""

from typing import ClassVar

from ragstone import ContextRelevancy, Metric
from ragstone.testing import FakeLLM

from ..support.judges import truth  # noqa: TID252

QUESTION = "Which say word1?"
FIRST = "It has word1 here. It has word2 here."
SECOND = "It has word3 here. It has word4 here."
ANSWER = "It has word1 here."
VALUE = 0.25  # one of four sentences has word1


class NeedsAll(Metric):
    """Needs every field and asks no one."""

    name: ClassVar[str] = "needs_all"
    version: ClassVar[str] = "1"
    required_fields = ("user_input", "retrieved_contexts", "response")

    def _flow(self, sample):
        yield from ()
        return self._score(1.0, "It is all there.")


class NeedsNothing(NeedsAll):
    """Takes any sample."""

    name: ClassVar[str] = "needs_nothing"
    required_fields = ()


def relevancy(**options):
    """A metric on question and contexts, with a judge that answers truthfully."""
    return ContextRelevancy(llm=FakeLLM(truth), **options)
