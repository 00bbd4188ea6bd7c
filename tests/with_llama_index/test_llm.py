"""LlamaIndexLLM: which method is asked with what, what is read from the answer, which loop and thread it runs in."""

import asyncio
import gc
import json
import threading

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, LogProb
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback

from ragstone import ContextRelevancy, LLMRequest
from ragstone.testing import LLMContract
from ragstone_llama_index import LlamaIndexLLM, borrowed
from ragstone_llama_index.replies import to_reply

from .models import SAMPLE, Chatting, Completing, drive, metrics, truth


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
def test_a_chat_model_gets_instructions_and_data_as_messages(ask):
    llm, request = Chatting(truth, system_prompt="You are a pirate."), a_request()
    assert json.loads(ask(LlamaIndexLLM(llm), request).text) == truth(request)
    ((system, user),) = llm.script.prompts
    assert system.content == request.system
    assert user.content.startswith(request.user)
    assert json.dumps(request.schema) in user.content
    assert llm.system_prompt == "You are a pirate."


@HALVES
def test_another_model_gets_one_text(ask):
    llm, request = Completing(truth, system_prompt="You are a pirate."), a_request()
    assert json.loads(ask(LlamaIndexLLM(llm), request).text) == truth(request)
    (prompt,) = llm.script.prompts
    assert prompt.startswith(f"{request.system}\n\n{request.user}")
    assert "pirate" not in prompt


@HALVES
def test_the_system_role_is_the_models_and_there_are_no_empty_instructions(ask):
    class Cohere(Wet):
        @property
        def metadata(self):
            return LLMMetadata(is_chat_model=True, system_role="chatbot")

    seen = []
    judge = LlamaIndexLLM(Cohere(messages_to_prompt=lambda messages: seen.extend(messages) or "JSON"))
    ask(judge, LLMRequest("demo.ask", "Be terse.", "Is it?", {}))
    ask(judge, LLMRequest("demo.ask", "", "Is it?", {}))
    assert [(message.role.value, message.content) for message in seen] == [
        ("chatbot", "Be terse."),
        ("user", "Is it?"),
        ("user", "Is it?"),
    ]


USAGE = {
    "raw dict": {"raw": {"usage": {"prompt_tokens": 9, "completion_tokens": 3}}},
    "raw object": {"raw": type("Raw", (), {"usage": type("Usage", (), {"input_tokens": 9, "output_tokens": 3})()})()},
    "gemini": {"raw": {"usage_metadata": {"prompt_token_count": 9, "candidates_token_count": 3}}},
    "raw first": {
        "raw": {"usage": {"prompt_tokens": 9, "completion_tokens": 3}},
        "additional_kwargs": {"prompt_tokens": 900, "completion_tokens": 300},
    },
    "no usage in raw": {"raw": {"usage": None}, "additional_kwargs": {"input_tokens": 9, "output_tokens": 3}},
}


def test_tokens_are_the_providers():
    for fields in USAGE.values():
        message = ChatMessage(content="x", additional_kwargs=fields.get("additional_kwargs", {}))
        for response in (
            CompletionResponse(text="x", **fields),
            ChatResponse(message=ChatMessage(content="x"), **fields),
            ChatResponse(message=message, raw=fields["raw"]),
        ):
            reply = to_reply(response, a_request())
            assert (reply.input_tokens, reply.output_tokens) == (9, 3)


def test_tokens_that_nobody_counted_are_none():
    for usage in (None, {}, "9", {"prompt_tokens": -1}):
        reply = to_reply(CompletionResponse(text="x", raw={"usage": usage}), a_request())
        assert (reply.input_tokens, reply.output_tokens) == (None, None)
    reply = to_reply(CompletionResponse(text="x", raw={"usage": {"input_tokens": 5}}), a_request())
    assert (reply.input_tokens, reply.output_tokens) == (5, None)


def test_log_probabilities_become_those_of_the_choices():
    alternatives = [LogProb(token="Yes", logprob=-0.105), LogProb(token="no", logprob=-2.303)]
    for response in (
        CompletionResponse(text="Yes.", logprobs=[alternatives, [LogProb(token=".", logprob=0.0)]]),
        ChatResponse(message=ChatMessage(content="Yes."), logprobs=[[], alternatives]),
    ):
        reply = to_reply(response, YES_OR_NO)
        assert reply.text == "yes"
        assert reply.probabilities == pytest.approx({"yes": 0.9, "no": 0.1}, abs=1e-3)
    for logprobs in (None, [], [[]], [[LogProb(token="Maybe", logprob=-0.1)]]):
        assert to_reply(CompletionResponse(text="yes", logprobs=logprobs), YES_OR_NO).probabilities is None


CALL = {"function": {"name": "reply", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("message", "raw", "text"),
    [
        (ChatMessage('Hm.</think>{"a": 1}'), None, '{"a": 1}'),
        (ChatMessage("", additional_kwargs={"tool_calls": [CALL]}), None, '{"a": 1}'),
        (ChatMessage("", additional_kwargs={"tool_calls": [CALL, CALL]}), None, '{"a": 1}\n{"a": 1}'),
        (ChatMessage("", additional_kwargs={"thinking": '{"a": 1}'}), None, '{"a": 1}'),
        (ChatMessage(""), {"choices": [{"message": {"reasoning_content": '{"a": 1}'}}]}, '{"a": 1}'),
        (ChatMessage(""), {"choices": [{"message": {"reasoning": 'Is it {"a": 1}?'}}]}, ""),
        (ChatMessage(""), {"choices": [{"message": {"reasoning": '{"a": 1}'}, "finish_reason": "length"}]}, ""),
    ],
)
def test_thoughts_tool_calls_and_reasoning(message, raw, text):
    assert to_reply(ChatResponse(message=message, raw=raw), a_request()).text == text


def test_a_tool_call_among_a_message_s_blocks_is_read():
    blocks = pytest.importorskip("llama_index.core.base.llms.types")
    if not hasattr(blocks, "ToolCallBlock"):
        pytest.skip("this release has no such blocks")
    message = ChatMessage(blocks=[blocks.ToolCallBlock(tool_name="reply", tool_kwargs={"a": 1})])
    assert to_reply(ChatResponse(message=message), a_request()).text == '{"a": 1}'


def test_a_message_without_text_is_an_empty_reply():
    assert to_reply(ChatResponse(message=ChatMessage(blocks=[])), a_request()).text == ""


def test_what_the_model_raises_is_raised():
    for ask in (generate, agenerate):
        with pytest.raises(ConnectionError, match="refused"):
            ask(LlamaIndexLLM(Chatting(lambda request: ConnectionError("refused"))), a_request())


# --- which model ---------------------------------------------------------------------------------------------


@HALVES
def test_settings_are_looked_up_at_each_call_and_left_as_they_are(ask):
    judge = LlamaIndexLLM()
    assert (judge.model, judge.max_input_tokens) == ("Settings.llm", None)
    for name in ("first", "second"):
        Settings.llm = llm = Chatting(truth, name=name)
        Settings.callback_manager = CallbackManager()
        before = llm.callback_manager
        ask(judge, a_request())
        assert judge.model == name
        assert len(llm.script.prompts) == 1
        assert llm.callback_manager is before


@HALVES
def test_no_llm_anywhere_is_said_with_what_to_set(ask, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llama_index.llms.openai", None)  # LlamaIndex's own default
    with pytest.raises(ValueError, match=r"^llm: none was given, .* set llama_index\.core\.Settings\.llm"):
        ask(LlamaIndexLLM(), a_request())


def test_what_is_refused():
    with pytest.raises(TypeError, match="llm: str is no LlamaIndex LLM"):
        LlamaIndexLLM("gpt-5")
    with pytest.raises(ValueError, match="asking"):
        LlamaIndexLLM(Wet(), asking="nicely")
    with pytest.raises(ValueError, match="max_input_tokens"):
        LlamaIndexLLM(Wet(), max_input_tokens=0)


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


@pytest.mark.parametrize(
    ("window", "output", "chosen", "limit"),
    [
        (3900, 256, None, None),  # LlamaIndex' default: unknown
        (128_000, 4_000, None, 124_000),
        (8_000, -1, None, 8_000),
        (8_000, 1_000, 50, 50),
        (-1, 256, None, None),
        (9, 9, None, None),
    ],
)
def test_the_longest_prompt(window, output, chosen, limit):
    class Sized(Wet):
        @property
        def metadata(self):
            return LLMMetadata(context_window=window, num_output=output)

    assert LlamaIndexLLM(Sized(), max_input_tokens=chosen).max_input_tokens == limit


# --- where it runs -------------------------------------------------------------------------------------------


def halves(llm):
    return [half for half, _ in llm.script.halves]


async def test_a_sync_only_model_is_called_from_threads_side_by_side():
    together = threading.Barrier(5, timeout=30)  # passed only if five calls are under way at once

    def reply(request):
        together.wait()
        return truth(request)

    llm = Completing(reply)
    judge = LlamaIndexLLM(llm)
    await asyncio.gather(*(judge.agenerate(a_request()) for _ in range(5)))
    assert llm.script.halves == [("sync", False)] * 5


async def test_a_model_with_an_async_half_is_awaited_on_the_callers_loop():
    llm = Chatting(truth)
    judge = LlamaIndexLLM(llm)
    await asyncio.gather(judge.agenerate(a_request()), judge.agenerate(a_request()))
    assert llm.script.halves == [("async", True)] * 2
    assert set(llm.script.loops) == {asyncio.get_running_loop()}


async def test_the_loop_that_made_the_adapter_is_its_home():
    """A notebook: the adapter is made inside the running loop, and a sync wrapper runs another loop in a thread."""
    llm = Chatting(truth)
    judge = LlamaIndexLLM(llm)
    await asyncio.to_thread(lambda: asyncio.run(judge.agenerate(a_request())))
    await judge.agenerate(a_request())
    assert halves(llm) == ["sync", "async"]


def test_every_adapter_of_a_model_has_the_same_home_and_no_second_loop_awaits_it():
    """Each evaluator makes an adapter of its own: two of them on two loops must not both await the model."""
    llm = Chatting(truth)
    for _ in range(3):
        asyncio.run(LlamaIndexLLM(llm).agenerate(a_request()))
    assert halves(llm) == ["async", "sync", "sync"]


def test_what_is_known_of_a_model_goes_with_it():
    gc.collect()
    before = len(borrowed._HOMES)
    asyncio.run(LlamaIndexLLM(Chatting(truth)).agenerate(a_request()))
    gc.collect()
    assert len(borrowed._HOMES) == before


@pytest.mark.parametrize(("in_threads", "half"), [(True, "sync"), (False, "async")])
def test_the_user_may_say_where(in_threads, half):
    llm = Chatting(truth)
    judge = LlamaIndexLLM(llm, in_threads=in_threads)
    for _ in range(2):
        asyncio.run(judge.agenerate(a_request()))
    assert halves(llm) == [half, half]


def test_a_model_that_overrides_only_acomplete_is_still_sync_when_asked_by_chat():
    class Half(Wet):
        @llm_completion_callback()
        async def acomplete(self, prompt, formatted=False, **kwargs):
            raise AssertionError("its achat calls chat, which calls complete")

    judge = LlamaIndexLLM(Half(chat_model=True))
    assert asyncio.run(judge.agenerate(LLMRequest("demo.ask", "", "Is it? JSON", {}))).text == '{"answer": "yes"}'


# --- structured_predict --------------------------------------------------------------------------------------


def one_request_of_each_task():
    rounds = [round_ for metric in metrics(truth) for round_ in drive(metric, SAMPLE)[1]]
    return {one.task: one for round_ in rounds for one in round_ if isinstance(one, LLMRequest)}.values()


@HALVES
@pytest.mark.parametrize("chat_model", [True, False])
def test_structured_every_form_of_reply_comes_through(chat_model, ask):
    for request in one_request_of_each_task():
        words = f"Sure: {json.dumps(truth(request))}"
        llm = Wet(words, chat_model=chat_model, system_prompt="Be a pirate.")
        reply = ask(LlamaIndexLLM(llm, structured=True), request)
        assert json.loads(reply.text) == truth(request)
        assert reply.input_tokens is None
        for prompt in llm.asked:
            assert request.user in prompt
            assert request.system in prompt
            assert "pirate" not in prompt


def test_structured_braces_in_the_data_stay():
    llm = Wet('{"a": 1}', chat_model=True)
    odd = "{name} {{x}} {} {0} {a.b} %s $x"
    LlamaIndexLLM(llm, structured=True).generate(LLMRequest("demo.ask", odd, odd, {"type": "object"}))
    assert llm.asked[0].count(odd) == 2


@HALVES
def test_structured_one_word_out_of_a_few_is_asked_for_plainly(ask):
    assert ask(LlamaIndexLLM(Wet("Yes."), structured=True), YES_OR_NO).text == "yes"


def test_structured_no_usable_answer_is_asked_again_and_then_unscored():
    llm = Wet("I would rather not.", chat_model=True)
    metric = ContextRelevancy(llm=LlamaIndexLLM(llm, structured=True, in_threads=False))
    assert metric.score(SAMPLE).reason == asyncio.run(metric.ascore(SAMPLE)).reason == "judge_unparseable"
    assert len(llm.asked) == 4
