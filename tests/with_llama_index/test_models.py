"""LlamaIndex' models as judges and embedders: what is asked how, what is read of the answer, which loop and thread."""

import asyncio
import json
import math
import sys
import threading
from types import SimpleNamespace

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

from ragstone import ContextRelevancy, Faithfulness, LLMRequest, Monitor, ResponseRelevancy, aevaluate, evaluate
from ragstone.identity import identity_json, judge_key
from ragstone.live import CallableSink
from ragstone.metrics.fitted import SUPPORTED, length
from ragstone.testing import EmbedderContract, LLMContract
from ragstone_llama_index import LlamaIndexEmbedder, LlamaIndexLLM, MetricEvaluator
from ragstone_llama_index.models import to_reply

from ..support.openai_server import NO_SYSTEM, chat  # noqa: TID252
from .models import SAMPLE, Chatting, Completing, Placing, drive, metrics, request_of, truth


class Wet(MockLLM):
    """Answers the contract's question, in whatever form."""

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text='{"answer": "yes"}' if "JSON" in prompt else "Yes.")


class Chatty(Wet):
    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True)


class TestCompleting(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Wet())


class TestChatting(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Chatty())


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

    def _answered(self, messages, half, kwargs):
        self.script.prompts.append(messages)
        if [message.role for message in messages] != [MessageRole.USER]:
            raise RuntimeError(f"Error code: {NO_SYSTEM[0]}")
        return ChatResponse(message=ChatMessage("{}"))


@HALVES
def test_a_model_without_a_system_role_gets_the_instructions_in_the_users_message(ask):
    request, llm = a_request(), NoSystem(truth)
    judge = LlamaIndexLLM(llm)
    assert [ask(judge, request).text for _ in range(2)] == ["{}"] * 2
    assert [len(messages) for messages in llm.script.prompts] == [2, 1, 1], "asked without one from then on"
    assert llm.script.prompts[2][0].content.startswith(f"{request.system}\n\n{request.user}")


COUNTS = {"input_tokens": 9, "output_tokens": 3}
OPENAI = {"prompt_tokens": 9, "completion_tokens": 3}
GEMINI = {"prompt_token_count": 9, "candidates_token_count": 3}
CALL = {"function": {"name": "reply", "arguments": '{"a": 1}'}}
CUT = {"choices": [{"message": {"reasoning": '{"a": 1}'}, "finish_reason": "length"}]}
REFUSED = {"choices": [{"finish_reason": "stop", "message": {"refusal": "No."}}]}
FILTERED = SimpleNamespace(choices=[SimpleNamespace(finish_reason="content_filter", message=None)])
REPLIES = [  # text, beside it, raw; what is read
    ("x", {"prompt_tokens": 900}, {"usage": OPENAI}, {"input_tokens": 9, "output_tokens": 3}),
    ("x", {}, SimpleNamespace(usage=SimpleNamespace(**COUNTS)), {"input_tokens": 9, "output_tokens": 3}),
    ("x", {}, {"usage_metadata": GEMINI}, {"input_tokens": 9, "output_tokens": 3}),
    ("x", COUNTS, {"usage": None}, {"input_tokens": 9, "output_tokens": 3}),
    ("x", {}, {"usage": {"input_tokens": 5}}, {"input_tokens": 5, "output_tokens": None}),
    ('Hm.</think>{"a": 1}', {}, None, {"text": '{"a": 1}', "ended": ""}),
    ("", {}, CUT, {"text": "", "ended": "length"}),
    ("", {}, FILTERED, {"text": "", "ended": "content_filter"}),
    ("", {}, REFUSED, {"text": "", "ended": "refusal"}),
    ("", {}, {"candidates": [{"finishReason": "RECITATION"}]}, {"ended": "RECITATION"}),
    ('Hm.</think>{"a": 1}', {}, {"stop_reason": "max_tokens"}, {"text": "", "ended": "max_tokens"}),
]


@pytest.mark.parametrize(("text", "beside", "raw", "expected"), REPLIES)
def test_what_is_read_of_a_providers_reply(text, beside, raw, expected):
    message = ChatMessage(content=text, additional_kwargs=beside)
    completion = CompletionResponse(text=text, raw=raw, additional_kwargs=beside)
    for response in (completion, ChatResponse(message=message, raw=raw)):
        reply = to_reply(response, a_request())
        assert {name: getattr(reply, name) for name in expected} == expected


def test_a_chats_tool_calls_and_reasoning():
    reasoned = {"choices": [{"message": {"reasoning_content": '{"a": 1}'}}]}
    one, two = ({"tool_calls": [CALL] * count} for count in (1, 2))
    for message, raw, text in (
        (ChatMessage("", additional_kwargs=one), None, '{"a": 1}'),
        (ChatMessage("", additional_kwargs=two), None, ""),
        (ChatMessage("{}", additional_kwargs=one), None, ""),
        (ChatMessage(""), reasoned, '{"a": 1}'),
        (ChatMessage(blocks=[]), None, ""),
    ):
        assert to_reply(ChatResponse(message=message, raw=raw), a_request()).text == text


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


# -------------------------------------------------------------------------------- without a wrapper


def by_evaluate(llm):
    return evaluate([SAMPLE], ["context_relevancy"], llm=llm, progress=False)[0].outcome.value


def by_aevaluate(llm):
    return asyncio.run(aevaluate([SAMPLE], [ContextRelevancy()], llm=llm, progress=False))[0].outcome.value


def by_metric(llm):
    return ContextRelevancy(llm=llm).score(SAMPLE).value


def by_monitor(llm):
    outcomes = []
    with Monitor(["context_relevancy"], llm=llm, sinks=CallableSink(outcomes.extend)) as monitor:
        monitor.submit(SAMPLE)
    return outcomes[0].outcome.value


@pytest.mark.parametrize(
    ("door", "make"),
    [(by_evaluate, Chatting), (by_aevaluate, Chatting), (by_metric, Completing), (by_monitor, Chatting)],
)
def test_a_model_object_judges_at_every_door_and_is_not_changed(door, make) -> None:
    expected = ContextRelevancy(llm=LlamaIndexLLM(make(truth))).score(SAMPLE).value
    manager = CallbackManager()
    llm = make(truth, callback_manager=manager)
    before, fields = dict(vars(llm)), llm.model_dump()
    assert door(llm) == expected
    assert (dict(vars(llm)), llm.model_dump(), manager.handlers) == (before, fields, [])
    assert llm.callback_manager is manager


def test_an_embedding_model_and_a_writer_are_taken_as_they_are() -> None:
    metric = ResponseRelevancy(llm=Chatting(truth), writer=Completing(truth), embedder=Placing())
    assert (type(metric.writer), type(metric.judge_embedder)) == (LlamaIndexLLM, LlamaIndexEmbedder)
    report = evaluate([SAMPLE], ["response_relevancy"], llm=Chatting(truth), embedder=Placing(), progress=False)
    assert report[0].outcome.value == metric.score(SAMPLE).value
    assert judge_key(metric.judge) == judge_key(LlamaIndexLLM(Chatting(truth)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ContextRelevancy(llm=MockEmbedding(embed_dim=3)), "llm: MockEmbedding is not a LlamaIndex LLM"),
        (lambda: ResponseRelevancy(llm=MockLLM(), embedder=MockLLM()), "embed_model: MockLLM is not a LlamaIndex emb"),
        (lambda: evaluate([SAMPLE], ["response_relevancy"], llm=MockLLM()), "embedder: LlamaIndexLLM does not embed"),
        (lambda: MetricEvaluator("rag", MockLLM()), "'rag' is a group of metrics; name one of them: response_rel"),
        (lambda: LlamaIndexLLM("gpt-5"), "llm: str is not a LlamaIndex LLM"),
        (lambda: LlamaIndexLLM(Wet(), asking="nicely"), "asking"),
        (lambda: LlamaIndexLLM(Wet(), gives_probabilities=1), "gives_probabilities"),
        (lambda: LlamaIndexLLM(Wet(), max_input_tokens=0), "max_input_tokens"),
    ],
)
def test_what_is_refused(make, said) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        make()


# -------------------------------------------------------------------------------- the embedder

TEXTS = ["Who wrote it?", "Who wrote Emma?", "Was it Austen?", "When?"]


class TestPlacing(EmbedderContract):
    def embedder(self):
        return LlamaIndexEmbedder(Placing())


def aembed(embedder, texts):
    return asyncio.run(embedder.aembed(texts))


def test_all_texts_in_one_batch_as_texts_by_each_half_and_the_apps_cache_gets_nothing():
    cache = SimpleKVStore()
    embed_model = Placing(embeddings_cache=cache)
    embedder = LlamaIndexEmbedder(embed_model)
    for place in (LlamaIndexEmbedder.embed, aembed, aembed):  # no second loop awaits it
        rows = place(embedder, TEXTS)
        assert (rows.shape, rows.dtype) == ((4, 8), np.float32)
        assert place(embedder, []).shape == (0, 0)
    assert embed_model.batches == [(half, TEXTS) for half in ("sync", "async", "sync")]
    assert cache.get_all(collection="embeddings") == {}
    assert embed_model.embeddings_cache is cache


# -------------------------------------------------------------------------------- the real package


def openai(server, **settings):
    real = pytest.importorskip("llama_index.llms.openai", reason="needs llama-index-llms-openai")
    return real.OpenAI("gpt-4o-mini", api_base=server.url, api_key="sk-test", max_retries=0, **settings)


def truthful(body):
    """What a truthful model behind OpenAI's API says."""
    system, user = (message["content"] for message in body["messages"])
    said = truth(request_of(system, user))
    return said if isinstance(said, str) else json.dumps(said)


def test_openai_with_its_tokens_and_its_own_temperature(openai_server):
    server = openai_server(truthful)
    evaluator = MetricEvaluator("context_relevancy", openai(server, temperature=0.3))
    inputs = {"query": SAMPLE.user_input, "contexts": list(SAMPLE.retrieved_contexts)}
    results = [evaluator.evaluate(**inputs), *(asyncio.run(evaluator.aevaluate(**inputs)) for _ in range(3))]
    for result in results:  # the client keeps connections of the loop it was first awaited on
        assert result.score is not None
        assert (result.usage.input_tokens, result.usage.output_tokens) == (11, 7)
    for body in server.bodies:
        assert body["temperature"] == 0.3
        assert set(body) <= {"messages", "model", "stream", "temperature"}


def test_openai_with_log_probabilities(openai_server):
    alternatives = [
        {"token": "yes", "logprob": -0.105, "bytes": None},
        {"token": "no", "logprob": -2.303, "bytes": None},
    ]
    logprobs = {"content": [{**alternatives[0], "top_logprobs": alternatives}]}
    model = openai(openai_server(lambda body: chat("yes", logprobs=logprobs)), logprobs=True, top_logprobs=20)
    metric = Faithfulness(llm=LlamaIndexLLM(model, asking="one_by_one", gives_probabilities=True))
    assert metric.version.endswith("+expected"), "as the user declares it"
    result = MetricEvaluator(metric).evaluate(response="This.", contexts=["This. That."])
    (answer,) = SUPPORTED.answers([{"supported": math.log(9), "length": length("This. That.")}])
    assert result.score == pytest.approx(answer.probability("yes"), abs=1e-3)
    assert result.verdicts[0].probability == pytest.approx(answer.probability("yes"), abs=1e-3)
