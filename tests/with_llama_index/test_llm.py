"""LlamaIndexLLM and LlamaIndexEmbedder: what is asked how, what is read from the answer, which loop and thread."""

import asyncio
import json
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from llama_index.core import MockEmbedding, Settings
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    LogProb,
    MessageRole,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.storage.kvstore import SimpleKVStore

from ragstone import LLMRequest
from ragstone.identity import identity_json, judge_key
from ragstone.testing import EmbedderContract, LLMContract
from ragstone_llama_index import LlamaIndexEmbedder, LlamaIndexLLM
from ragstone_llama_index.models import to_reply

from ..support.openai_server import NO_SYSTEM  # noqa: TID252
from .models import SAMPLE, Chatting, Completing, Placing, drive, metrics, truth


class Wet(MockLLM):
    """Answers the contract's question, in whatever form, or says what it is given to say."""

    chat_model: bool = False
    words: str = ""
    asked: list = []  # noqa: RUF012 - pydantic copies it

    def __init__(self, words="", *, chat_model=False, **fields):
        super().__init__(**fields)
        self.words, self.chat_model = words, chat_model

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=self.chat_model)

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        self.asked.append(prompt)
        return CompletionResponse(text=self.words or ('{"answer": "yes"}' if "JSON" in prompt else "Yes."))


class TestCompleting(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Wet())


class TestChatting(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Wet(chat_model=True))


def a_request():
    """A real request: the first of the last metric."""
    return drive(metrics(truth)[-1], SAMPLE)[1][0][0]


YES_OR_NO = LLMRequest("demo.ask", "", "Is it?", {"enum": ["yes", "no"]}, choices=("yes", "no"))


def generate(judge, request):
    return judge.generate(request)


def agenerate(judge, request):
    return asyncio.run(judge.agenerate(request))


HALVES = pytest.mark.parametrize("ask", [generate, agenerate])


@HALVES
def test_a_chat_model_gets_instructions_and_data_as_messages_and_another_one_text(ask):
    request = a_request()
    llm, other = (model(truth, system_prompt="You are a pirate.") for model in (Chatting, Completing))
    assert json.loads(ask(LlamaIndexLLM(llm), request).text) == truth(request)
    assert json.loads(ask(LlamaIndexLLM(other), request).text) == truth(request)
    ((system, user),), (prompt,) = llm.script.prompts, other.script.prompts
    assert system.content == request.system
    assert user.content.startswith(request.user)
    assert json.dumps(request.schema) in user.content
    assert prompt.startswith(f"{request.system}\n\n{request.user}")
    assert "pirate" not in prompt


class NoSystem(Chatting):
    """A chat model that takes no system message, as its server says."""

    problem: Any = None

    def _answered(self, messages, half, kwargs):
        self.script.prompts.append(messages)
        if [message.role for message in messages] != [MessageRole.USER]:
            raise RuntimeError(f"Error code: {self.problem[0]} - {self.problem[1]}")
        return ChatResponse(message=ChatMessage("{}"))


@HALVES
@pytest.mark.parametrize("problem", NO_SYSTEM)
def test_a_model_without_a_system_role_gets_the_instructions_in_the_users_message(ask, problem):
    request = a_request()
    llm = NoSystem(truth, problem=problem)
    judge = LlamaIndexLLM(llm)
    assert [ask(judge, request).text for _ in range(2)] == ["{}"] * 2
    assert [len(messages) for messages in llm.script.prompts] == [2, 1, 1], "asked without one from then on"
    for (user,) in llm.script.prompts[1:]:
        assert user.content.startswith(f"{request.system}\n\n{request.user}")
        assert json.dumps(request.schema) in user.content


COUNTS = {"input_tokens": 9, "output_tokens": 3}
OPENAI = {"prompt_tokens": 9, "completion_tokens": 3}
GEMINI = {"prompt_token_count": 9, "candidates_token_count": 3}
MORE = {"prompt_tokens": 900, "completion_tokens": 300}


@pytest.mark.parametrize(
    ("raw", "beside", "counted"),
    [
        ({"usage": OPENAI}, MORE, (9, 3)),
        (SimpleNamespace(usage=SimpleNamespace(**COUNTS)), {}, (9, 3)),
        ({"usage_metadata": GEMINI}, {}, (9, 3)),
        ({"usage": None}, COUNTS, (9, 3)),
        ({"usage": {"input_tokens": 5}}, {}, (5, None)),
        ({"usage": {"prompt_tokens": -1}}, {}, (None, None)),
    ],
)
def test_tokens_are_the_providers(raw, beside, counted):
    message = ChatMessage(content="x", additional_kwargs=beside)
    for response in (
        CompletionResponse(text="x", raw=raw, additional_kwargs=beside),
        ChatResponse(message=message, raw=raw),
    ):
        reply = to_reply(response, a_request())
        assert (reply.input_tokens, reply.output_tokens) == counted


def test_log_probabilities_become_those_of_the_choices():
    alternatives = [LogProb(token="Yes", logprob=-0.105), LogProb(token="no", logprob=-2.303)]
    for response in (
        CompletionResponse(text="Yes.", logprobs=[alternatives, [LogProb(token=".", logprob=0.0)]]),
        ChatResponse(message=ChatMessage(content="Yes."), logprobs=[[], alternatives]),
    ):
        reply = to_reply(response, YES_OR_NO)
        assert (reply.text, reply.probabilities) == ("yes", pytest.approx({"yes": 0.9, "no": 0.1}, abs=1e-3))
    for logprobs in (None, [[]], [[LogProb(token="Maybe", logprob=-0.1)]]):
        assert to_reply(CompletionResponse(text="yes", logprobs=logprobs), YES_OR_NO).probabilities is None


CALL = {"function": {"name": "reply", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("message", "raw", "text"),
    [
        (ChatMessage('Hm.</think>{"a": 1}'), None, '{"a": 1}'),
        (ChatMessage("", additional_kwargs={"tool_calls": [CALL, CALL]}), None, ""),
        (ChatMessage(""), {"choices": [{"message": {"reasoning_content": '{"a": 1}'}}]}, '{"a": 1}'),
        (ChatMessage(""), {"choices": [{"message": {"reasoning": '{"a": 1}'}, "finish_reason": "length"}]}, ""),
        (ChatMessage('Hm.</think>{"a": 1}'), {"choices": [{"finish_reason": "length"}]}, ""),
        (ChatMessage('Hm.</think>{"a": 1}'), {"stop_reason": "max_tokens"}, ""),
        (ChatMessage('{"a": 1}'), {"choices": [{"message": {"refusal": "I cannot."}}]}, ""),
        (ChatMessage("{}", additional_kwargs={"tool_calls": [CALL]}), None, ""),
        (ChatMessage(blocks=[]), None, ""),
    ],
)
def test_thoughts_tool_calls_and_reasoning(message, raw, text):
    assert to_reply(ChatResponse(message=message, raw=raw), a_request()).text == text


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        (SimpleNamespace(choices=[SimpleNamespace(finish_reason="content_filter", message=None)]), "content_filter"),
        ({"choices": [{"finish_reason": "stop", "message": {"refusal": "No."}}]}, "refusal"),
        ({"block_reason": "PROHIBITED_CONTENT"}, "blocked: PROHIBITED_CONTENT"),
        ({"candidates": [{"finishReason": "RECITATION"}]}, "RECITATION"),
        (SimpleNamespace(incomplete_details=SimpleNamespace(reason="max_output_tokens")), "max_output_tokens"),
        (None, ""),
    ],
)
def test_a_reply_says_why_it_ended_by_whatever_name_the_provider_has_for_it(raw, word):
    assert to_reply(ChatResponse(message=ChatMessage(""), raw=raw), a_request()).ended == word
    assert to_reply(CompletionResponse(text="", raw=raw), a_request()).ended == word


def test_settings_are_looked_up_at_each_call_and_left_as_they_are():
    judge, embedder = LlamaIndexLLM(), LlamaIndexEmbedder()
    assert (judge.model, judge.max_input_tokens) == ("Settings.llm", None)
    for name, ask in (("first", generate), ("second", agenerate)):
        Settings.llm = llm = Chatting(truth, name=name)
        Settings.embed_model = MockEmbedding(embed_dim=len(name))
        Settings.callback_manager = CallbackManager()
        before = llm.callback_manager
        ask(judge, a_request())
        assert (judge.model, len(llm.script.prompts)) == (name, 1)
        assert embedder.embed(["a"]).shape == (1, len(name))
        assert llm.callback_manager is before


def test_no_model_anywhere_is_said_with_what_to_set(monkeypatch):
    for module in ("llms", "embeddings"):
        monkeypatch.setitem(sys.modules, f"llama_index.{module}.openai", None)  # LlamaIndex's own default
    Settings._llm = Settings._embed_model = None
    with pytest.raises(ValueError, match=r"^llm: there is none here .* set llama_index\.core\.Settings\.llm"):
        LlamaIndexLLM().generate(a_request())
    with pytest.raises(ValueError, match=r"^embed_model: there is none here .* set llama_index\.core\.Settings\.embed"):
        LlamaIndexEmbedder().embed(["a"])


@pytest.mark.parametrize(("ask", "model"), [(generate, Completing), (agenerate, Chatting)])
def test_the_models_object_is_not_changed(ask, model):
    manager = CallbackManager()
    llm = model(truth, callback_manager=manager)
    before, handlers, fields = dict(vars(llm)), manager.handlers, llm.model_dump()
    ask(LlamaIndexLLM(llm), a_request())
    assert dict(vars(llm)) == before
    assert llm.callback_manager is manager
    assert manager.handlers is handlers
    assert handlers == []
    assert llm.model_dump() == fields


async def test_a_sync_only_model_is_called_from_threads_side_by_side():
    together = threading.Barrier(5, timeout=30)  # passed only if five calls are under way at once

    def reply(request):
        together.wait()
        return truth(request)

    llm = Completing(reply)
    judge = LlamaIndexLLM(llm)
    await asyncio.gather(*(judge.agenerate(a_request()) for _ in range(5)))
    assert llm.script.halves == [("sync", False)] * 5


async def test_the_loop_that_made_the_adapter_is_its_home():
    """A notebook: the adapter is made inside the running loop, and a sync wrapper runs another loop in a thread."""
    llm = Chatting(truth)
    judge = LlamaIndexLLM(llm)
    await asyncio.to_thread(lambda: asyncio.run(judge.agenerate(a_request())))
    await judge.agenerate(a_request())
    assert [half for half, _ in llm.script.halves] == ["sync", "async"]
    assert llm.script.loops[1] is asyncio.get_running_loop()


def test_no_second_loop_awaits_a_model():
    """Each evaluator makes an adapter of its own: two of them on two loops must not both await the model."""
    llm = Chatting(truth)
    for _ in range(2):
        asyncio.run(LlamaIndexLLM(llm).agenerate(a_request()))
    assert [half for half, _ in llm.script.halves] == ["async", "sync"]


@pytest.mark.parametrize(
    ("window", "output", "chosen", "limit"),
    [(3900, 256, None, None), (128_000, 4_000, None, 124_000), (8_000, -1, None, 8_000), (8_000, 1_000, 50, 50)],
)
def test_the_longest_prompt_is_the_windows_rest_unless_it_is_llama_indexs_default(window, output, chosen, limit):
    class Sized(Wet):
        @property
        def metadata(self):
            return LLMMetadata(context_window=window, num_output=output)

    assert LlamaIndexLLM(Sized(), max_input_tokens=chosen).max_input_tokens == limit


def test_what_is_refused():
    with pytest.raises(TypeError, match="llm: str is not a LlamaIndex LLM"):
        LlamaIndexLLM("gpt-5")
    with pytest.raises(TypeError, match="embed_model: str is not a LlamaIndex embedding model"):
        LlamaIndexEmbedder("text-embedding-3-small")
    for wrong in ({"asking": "nicely"}, {"gives_probabilities": 1}, {"max_input_tokens": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            LlamaIndexLLM(Wet(), **wrong)


class Remote(MockLLM):
    """Has the fields of the models that LlamaIndex' packages for servers have."""

    api_base: str = "http://me:s3cret@127.0.0.1:1/v1"
    api_key: str = "s3cret"


def test_model_address_and_declared_identity_make_a_judge():
    judges = [
        LlamaIndexLLM(Remote()),
        LlamaIndexLLM(MockLLM()),
        LlamaIndexLLM(Remote().model_copy(update={"api_base": "http://127.0.0.1:2/v1"})),
        LlamaIndexLLM(Remote(max_tokens=9), identity="short"),
        LlamaIndexEmbedder(MockEmbedding(embed_dim=3)),
        LlamaIndexEmbedder(MockEmbedding(embed_dim=4), identity="4"),
    ]
    assert len(set(map(judge_key, judges))) == len(judges)
    assert judge_key(LlamaIndexLLM(Remote().model_copy(update={"api_key": "another"}))) == judge_key(judges[0])
    assert "s3cret" not in identity_json(judges[0])


# -------------------------------------------------------------------------------- the embedder

TEXTS = ["Who wrote it?", "Who wrote Emma?", "Was it Austen?", "When?"]


class TestPlacing(EmbedderContract):
    def embedder(self):
        return LlamaIndexEmbedder(Placing())


def aembed(embedder, texts):
    return asyncio.run(embedder.aembed(texts))


@pytest.mark.parametrize("place", [LlamaIndexEmbedder.embed, aembed])
def test_all_texts_in_one_batch_as_texts_and_the_apps_cache_gets_nothing(place):
    cache = SimpleKVStore()
    embed_model = Placing(embeddings_cache=cache)
    embedder = LlamaIndexEmbedder(embed_model)
    rows = place(embedder, TEXTS)
    assert (rows.shape, rows.dtype) == ((4, 8), np.float32)
    assert [texts for _, texts in embed_model.batches] == [TEXTS]
    assert cache.get_all(collection="embeddings") == {}
    assert embed_model.embeddings_cache is cache
    assert place(embedder, []).shape == (0, 0)


def test_each_half_is_the_embedding_models_own_and_no_second_loop_awaits_it():
    embed_model = Placing()
    embedder = LlamaIndexEmbedder(embed_model)
    embedder.embed(["a"])
    for _ in range(2):
        aembed(embedder, ["a"])
    assert [half for half, _ in embed_model.batches] == ["sync", "async", "sync"]
