"""A judge behind HTTP for the tests of `ProviderBatch`: fills in schemas, chooses words by their prompt's hash."""

import re
from hashlib import sha256

from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMRequest,
    ResponseCompleteness,
    ResponseRelevancy,
    SummarizationScore,
)
from ragstone.batch.estimation import synthetic_reply

from ..support.batch_server import chat  # noqa: TID252 - under importlib mode tests are no package
from ..support.openai_server import embeddings  # noqa: TID252

MODEL = "batch-model"


def judge(body):
    """What the model answers to a request, the same each time."""
    if "input" in body:
        return embeddings([[byte / 255 for byte in sha256(text.encode()).digest()[:8]] for text in body["input"]])
    assert body["model"] == MODEL
    user = body["messages"][1]["content"]
    words = re.search(r"one word: (\w+), (\w+) or (\w+)|one word: (\w+) or (\w+)", user)
    if words:
        choices = [word for word in words.groups() if word]
        word = choices[sha256(user.encode()).digest()[0] % len(choices)]
        top = [{"token": choice, "logprob": -0.2 if choice == word else -2.0} for choice in choices]
        return chat(word, logprobs={"content": [{"token": word, "logprob": -0.2, "top_logprobs": top}]})
    return synthetic_reply(LLMRequest("demo.ask", "", user, body["response_format"]["json_schema"]["schema"])).text


def row(i):
    return {
        "id": f"q{i}",
        "user_input": f"Who wrote book {i}? Ann {i} lives here. She writes.",
        "retrieved_contexts": [f"Book {i} is a novel. Ann {i} wrote it.", "It rains. It snows."],
        "response": f"Ann {i} wrote book {i}. It is a novel.",
    }


def rows(n):
    return [row(i) for i in range(n)]


def all_five(client):
    return [
        SummarizationScore(llm=client),
        AlignmentCoverage(llm=client),
        ResponseRelevancy(llm=client, embedder=client),
        ContextRelevancy(llm=client),
        ResponseCompleteness(llm=client),
    ]


def plain(results):
    """Results without what differs between two runs: the time they took."""
    return [
        (r.row, r.sample_id, r.draw, r.judge, r.outcome.model_dump(exclude={"usage": {"seconds"}})) for r in results
    ]
