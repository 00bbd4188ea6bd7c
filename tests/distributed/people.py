"""Rows, a judge behind HTTP that knows what it was asked, and judges that specs of these tests name."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass

from ragstone import ContextRelevancy
from ragstone.judge import LLMReply
from ragstone.testing import FakeEmbedder, FakeLLM


def rows(n, first=0):
    return [
        {"id": f"q{i}", "user_input": f"Who is person {i}?", "retrieved_contexts": [f"Ann {i}. It rains."]}
        for i in range(first, first + n)
    ]


def asked(server):
    """How often the judge was asked about each person."""
    texts = [str(seen.body["messages"]) for seen in server.seen if seen.path.endswith("/chat/completions")]
    return Counter(re.search(r"Who is person (\d+)\?", text)[1] for text in texts)


def judge():
    made.append(1)
    return FakeLLM(lambda request: {"ids": [1]}, model="scripted")


made = []


def graded():
    given = LLMReply("yes", probabilities={"yes": 0.75, "no": 0.25})
    return FakeLLM(lambda request: given, asking="one_by_one", gives_probabilities=True)


def fails_on_odd():
    def reply(request):
        return ConnectionError("refused") if re.search(r"person \d*[13579]\?", request.user) else {"ids": [1]}

    return FakeLLM(reply, model="fails-on-odd")


class watched:  # noqa: N801
    """A judge that counts its calls in flight."""

    model = "watched"
    asking = "together"
    most = now = 0

    async def agenerate(self, request, /):
        watched.now += 1
        watched.most = max(watched.most, watched.now)
        await asyncio.sleep(0.01)
        watched.now -= 1
        return LLMReply('{"ids": [1]}')

    def generate(self, request, /):
        raise AssertionError("on an event loop the other half is called")


def embedder():
    return FakeEmbedder()


def broken():
    raise OSError("no licence on this machine")


@dataclass(frozen=True, kw_only=True)
class Renamed(ContextRelevancy):
    name = "renamed"
