"""The real OpenAI integration of LlamaIndex as a judge, against a server on loopback."""

import asyncio
import json
import math

import pytest

from ragstone import Faithfulness
from ragstone.metrics.fitted import SUPPORTED, length
from ragstone_llama_index import LlamaIndexLLM, MetricEvaluator

from ..support.openai_server import chat  # noqa: TID252
from .models import SAMPLE, request_of, truth

openai = pytest.importorskip("llama_index.llms.openai", reason="needs llama-index-llms-openai")

INPUTS = {"query": SAMPLE.user_input, "contexts": list(SAMPLE.retrieved_contexts)}


def truthful(body):
    """What a truthful model behind OpenAI's API says."""
    system, user = (message["content"] for message in body["messages"])
    said = truth(request_of(system, user))
    return said if isinstance(said, str) else json.dumps(said)


def model(server, **settings):
    return openai.OpenAI("gpt-4o-mini", api_base=server.url, api_key="sk-test", max_retries=0, **settings)


def test_a_judge_with_its_tokens_and_its_own_temperature(openai_server):
    server = openai_server(truthful)
    evaluator = MetricEvaluator("context_relevancy", model(server, temperature=0.3))
    results = [evaluator.evaluate(**INPUTS), *(asyncio.run(evaluator.aevaluate(**INPUTS)) for _ in range(3))]
    for result in results:  # the client keeps connections of the loop it was first awaited on
        assert result.score is not None
        assert (result.usage.input_tokens, result.usage.output_tokens) == (11, 7)
    for body in server.bodies:
        assert body["temperature"] == 0.3
        assert set(body) <= {"messages", "model", "stream", "temperature"}


def test_log_probabilities_where_the_model_asks_for_them(openai_server):
    alternatives = [
        {"token": "yes", "logprob": -0.105, "bytes": None},
        {"token": "no", "logprob": -2.303, "bytes": None},
    ]
    logprobs = {"content": [{**alternatives[0], "top_logprobs": alternatives}]}
    server = openai_server(lambda body: chat("yes", logprobs=logprobs))
    judge = LlamaIndexLLM(model(server, logprobs=True, top_logprobs=20), asking="one_by_one", gives_probabilities=True)
    metric = Faithfulness(llm=judge)
    assert metric.version.endswith("+expected"), "as the user declares it"
    result = MetricEvaluator(metric).evaluate(response="This.", contexts=["This. That."])
    (answer,) = SUPPORTED.answers([{"supported": math.log(9), "length": length("This. That.")}])
    assert result.score == pytest.approx(answer.probability("yes"), abs=1e-3)
    assert result.verdicts[0].probability == pytest.approx(answer.probability("yes"), abs=1e-3)
