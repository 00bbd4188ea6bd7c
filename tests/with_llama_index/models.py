"""Real LlamaIndex models whose words come from a function of ragstone's request, as for `FakeLLM`."""

import asyncio
import functools
import json
import re
import threading

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from pydantic import PrivateAttr

from ragstone import LLMRequest, Sample
from ragstone.adapters.chat_models import spelled_out
from ragstone.judging.prompt import DATA_NOTICE
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import drive, metrics, truth  # noqa: TID252 - for all tests of this folder

__all__ = [
    "SAMPLE", "Chatting", "Completing", "Placing", "PlacingSync", "drive", "metrics", "request_of", "truth",
]  # fmt: skip

SAMPLE = Sample(
    user_input="It has word0 here. It has word2 here. Which of them say word1?",
    retrieved_contexts=["It has word0 here. It has word1 here.", "It has word2 here."],
    response="It has word0 here. It has word1 here.",
)


IN_PROMPT = spelled_out(LLMRequest("demo.ask", "", "", {"type": "object"})).partition("{")[0]


@functools.cache
def _kinds():
    """One request of each kind by its instructions, form and data, from the metrics themselves."""
    seen = {}
    for asking in ("together", "one_by_one"):
        for metric in metrics(truth, asking):
            for round_ in drive(metric, SAMPLE)[1]:
                seen.update({_kind(r.system, r.user, not r.choices): r for r in round_ if isinstance(r, LLMRequest)})
    return seen


def _kind(system, user, wants_json):
    """The instructions stand in the system message, or, asked one by one, behind the last fence."""
    behind = re.split(r"\n</\w+ \w+>\n", user)[-1].partition("Reply with")[0]
    instructions = behind if system == DATA_NOTICE else system
    return re.sub(r"\d+", "N", instructions), bool(wants_json), "\n<sentence " in user


def request_of(system, user):
    """The request that a model was given as these texts."""
    user, _, schema = user.partition(IN_PROMPT)
    kind = _kinds()[_kind(system, user, schema)]
    return LLMRequest(kind.task, system, user, json.loads(schema) if schema else {}, choices=kind.choices)


def request_in(prompt):
    """The request in a prompt of a model that takes one text."""
    system, _, user = prompt.partition("\n\n")
    return request_of(system, user)


class Script:
    """What the models below share: the words, and what was seen. A shallow copy of a model shares it too."""

    def __init__(self, reply):
        self.reply = reply
        self.prompts = []
        self.halves = []
        self.loops = []

    def answer(self, request, prompt, half):
        """(text, raw) for a request."""
        self.prompts.append(prompt)
        self.halves.append((half, threading.current_thread() is threading.main_thread()))
        try:
            self.loops.append(asyncio.get_running_loop())
        except RuntimeError:
            self.loops.append(None)
        reply = FakeLLM(self.reply).generate(request)
        counts = {"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens}
        return reply.text, {"usage": counts} if reply.input_tokens is not None else None


class Scripted(LLM):
    """Says what its script says."""

    _script: Script = PrivateAttr()

    def __init__(self, reply, **fields):
        super().__init__(**fields)
        self._script = Script(reply)

    @property
    def script(self):
        return self._script


class Completing(Scripted, CustomLLM):
    """Sync only, one text in: its async half is CustomLLM's."""

    name: str = "completing"

    @property
    def metadata(self):
        return LLMMetadata(model_name=self.name)

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        assert not kwargs, "no provider's arguments"
        text, raw = self._script.answer(request_in(prompt), prompt, "sync")
        return CompletionResponse(text=text, raw=raw)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError


class Chatting(Scripted):
    """Both halves, messages in."""

    name: str = "chatting"

    @property
    def metadata(self):
        return LLMMetadata(model_name=self.name, is_chat_model=True)

    def _answered(self, messages, half, kwargs):
        assert not kwargs, "no provider's arguments"
        system, user = messages
        assert (system.role, user.role) == (MessageRole.SYSTEM, MessageRole.USER)
        text, raw = self._script.answer(request_of(system.content, user.content), messages, half)
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), raw=raw)

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        return self._answered(messages, "sync", kwargs)

    @llm_chat_callback()
    async def achat(self, messages, **kwargs):
        await asyncio.sleep(0)
        return self._answered(messages, "async", kwargs)

    def complete(self, prompt, formatted=False, **kwargs):
        raise AssertionError("a chat model is asked by chat")

    async def acomplete(self, prompt, formatted=False, **kwargs):
        raise AssertionError("a chat model is asked by achat")

    stream_chat = astream_chat = stream_complete = astream_complete = complete


class Placing(BaseEmbedding):
    """Both halves; texts are placed as FakeEmbedder places them."""

    model_name: str = "placing"
    _batches: list = PrivateAttr(default_factory=list)

    @property
    def batches(self):
        return self._batches

    def _place(self, texts, half):
        self._batches.append((half, list(texts)))
        return np.asarray(FakeEmbedder().embed(texts), dtype=float).tolist()

    def _get_text_embedding(self, text):
        return self._place([text], "sync")[0]

    def _get_text_embeddings(self, texts):
        return self._place(texts, "sync")

    async def _aget_text_embeddings(self, texts):
        return self._place(texts, "async")

    def _get_query_embedding(self, query):
        raise AssertionError("texts are compared with texts")

    async def _aget_query_embedding(self, query):
        raise AssertionError("texts are compared with texts")


class PlacingSync(Placing):
    """Sync only: its async half is BaseEmbedding's."""

    _aget_text_embeddings = BaseEmbedding._aget_text_embeddings
