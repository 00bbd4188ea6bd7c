"""LlamaIndex's structured_predict as an opt-in: by text and by function calling."""

import asyncio
import json

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import Field

from ragstone import ContextRelevancy, LLMRequest, Unscored
from ragstone_llama_index import LlamaIndexLLM

from .models import SAMPLE, drive, metrics, truth


def ways(judge):
    return [judge.generate, lambda request: asyncio.run(judge.agenerate(request))]


class Wording(MockLLM):
    """Says what it is given to say, and keeps what it was asked."""

    words: str = ""
    asked: list = Field(default_factory=list)

    chat_model: bool = False

    def __init__(self, words, *, chat_model=False, **fields):
        super().__init__(**fields)
        self.words, self.chat_model = words, chat_model

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=self.chat_model)

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        self.asked.append(prompt)
        return CompletionResponse(text=self.words)


def all_requests():
    seen = {}
    for metric in metrics(truth):
        for round_ in drive(metric, SAMPLE)[1]:
            seen.update({request.task: request for request in round_ if isinstance(request, LLMRequest)})
    return list(seen.values())


@pytest.mark.parametrize("request_", all_requests(), ids=lambda request: request.task)
@pytest.mark.parametrize("chat_model", [True, False])
def test_every_form_of_reply_comes_through(request_, chat_model):
    llm = Wording(f"Sure: {json.dumps(truth(request_))}", chat_model=chat_model, system_prompt="Be a pirate.")
    for ask in ways(LlamaIndexLLM(llm, structured=True)):
        reply = ask(request_)
        assert json.loads(reply.text) == truth(request_)
        assert reply.input_tokens is None
    for prompt in llm.asked:
        assert request_.user in prompt
        assert request_.system in prompt
        assert "pirate" not in prompt


def test_braces_in_the_data_stay():
    llm = Wording('{"a": 1}', chat_model=True)
    odd = "{name} {{x}} {} {0} {a.b} %s $x"
    LlamaIndexLLM(llm, structured=True).generate(LLMRequest("demo.ask", odd, odd, {"type": "object"}))
    assert llm.asked[0].count(odd) == 2


def test_one_word_out_of_a_few_is_asked_for_plainly():
    llm = Wording("Yes.")
    for ask in ways(LlamaIndexLLM(llm, structured=True)):
        assert ask(LLMRequest("demo.ask", "", "Is it?", {"enum": ["yes", "no"]}, choices=("yes", "no"))).text == "yes"


def test_no_usable_answer_is_asked_again_and_then_unscored():
    llm = Wording("I would rather not.", chat_model=True)
    metric = ContextRelevancy(llm=LlamaIndexLLM(llm, structured=True, in_threads=False))
    for outcome in (metric.score(SAMPLE), asyncio.run(metric.ascore(SAMPLE))):
        assert isinstance(outcome, Unscored)
        assert outcome.reason == "judge_unparseable"
    assert len(llm.asked) == 4
