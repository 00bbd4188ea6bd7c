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

from ragstone import LLMRequest
from ragstone.testing import LLMContract
from ragstone_llama_index import LlamaIndexLLM, borrowed
from ragstone_llama_index.replies import to_reply

from .models import SAMPLE, Chatting, Completing, drive, metrics, truth


class Wet(MockLLM):
    """Answers the contract's question, in whatever form."""

    chat_model: bool = False

    def __init__(self, *, chat_model=False, **fields):
        super().__init__(**fields)
        self.chat_model = chat_model

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=self.chat_model)

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text='{"answer": "yes"}' if "JSON" in prompt else "Yes.")


class TestCompleting(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Wet())


class TestChatting(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Wet(chat_model=True))


class TestInThreads(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Wet(chat_model=True), in_threads=True)


class TestOnTheLoop(LLMContract):
    def llm(self):
        return LlamaIndexLLM(Wet(chat_model=True), in_threads=False)


def a_request():
    """A real request: the first of the last metric."""
    return drive(metrics(truth)[-1], SAMPLE)[1][0][0]


def generate(judge, request):
    return judge.generate(request)


def agenerate(judge, request):
    return asyncio.run(judge.agenerate(request))


HALVES = pytest.mark.parametrize("ask", [generate, agenerate])


@HALVES
def test_a_chat_model_gets_instructions_and_data_as_messages(ask):
    llm, request = Chatting(truth), a_request()
    assert json.loads(ask(LlamaIndexLLM(llm), request).text) == truth(request)
    ((system, user),) = llm.script.prompts
    assert system.content == request.system
    assert user.content.startswith(request.user)
    assert json.dumps(request.schema) in user.content


@HALVES
def test_another_model_gets_one_text(ask):
    llm, request = Completing(truth), a_request()
    assert json.loads(ask(LlamaIndexLLM(llm), request).text) == truth(request)
    (prompt,) = llm.script.prompts
    assert prompt.startswith(f"{request.system}\n\n{request.user}")


@HALVES
@pytest.mark.parametrize("model", [Chatting, Completing])
def test_the_apps_system_prompt_stays_out(ask, model):
    llm = model(truth, system_prompt="You are a pirate.")
    ask(LlamaIndexLLM(llm), a_request())
    assert "pirate" not in str(llm.script.prompts)
    assert llm.system_prompt == "You are a pirate."


@HALVES
def test_the_system_role_is_the_models(ask):
    class Cohere(Wet):
        @property
        def metadata(self):
            return LLMMetadata(is_chat_model=True, system_role="chatbot")

    seen = []
    llm = Cohere(messages_to_prompt=lambda messages: seen.extend(messages) or "JSON")
    ask(LlamaIndexLLM(llm), LLMRequest("demo.ask", "Be terse.", "Is it?", {}))
    assert [message.role.value for message in seen] == ["chatbot", "user"]


@HALVES
def test_no_empty_instructions(ask):
    seen = []
    llm = Wet(chat_model=True, messages_to_prompt=lambda messages: seen.extend(messages) or "JSON")
    ask(LlamaIndexLLM(llm), LLMRequest("demo.ask", "", "Is it?", {}))
    assert [message.content for message in seen] == ["Is it?"]


USAGE = {
    "raw dict": {"raw": {"usage": {"prompt_tokens": 9, "completion_tokens": 3}}},
    "raw object": {"raw": type("Raw", (), {"usage": type("Usage", (), {"input_tokens": 9, "output_tokens": 3})()})()},
    "gemini": {"raw": {"usage_metadata": {"prompt_token_count": 9, "candidates_token_count": 3}}},
    "additional": {"additional_kwargs": {"prompt_tokens": 9, "completion_tokens": 3}},
    "raw first": {
        "raw": {"usage": {"prompt_tokens": 9, "completion_tokens": 3}},
        "additional_kwargs": {"prompt_tokens": 900, "completion_tokens": 300},
    },
    "no usage in raw": {"raw": {"usage": None}, "additional_kwargs": {"input_tokens": 9, "output_tokens": 3}},
}


@pytest.mark.parametrize("where", USAGE)
def test_tokens_are_the_providers(where):
    request = a_request()
    said = [
        CompletionResponse(text="x", **USAGE[where]),
        ChatResponse(message=ChatMessage(content="x"), **USAGE[where]),
    ]
    if "additional_kwargs" in USAGE[where]:
        extra = {name: value for name, value in USAGE[where].items() if name != "additional_kwargs"}
        message = ChatMessage(content="x", additional_kwargs=USAGE[where]["additional_kwargs"])
        said.append(ChatResponse(message=message, **extra))
    for response in said:
        reply = to_reply(response, request)
        assert (reply.input_tokens, reply.output_tokens) == (9, 3)


@pytest.mark.parametrize("raw", [None, {}, {"usage": {}}, {"usage": "9"}, {"usage": {"prompt_tokens": -1}}, object()])
def test_tokens_that_nobody_counted_are_none(raw):
    reply = to_reply(CompletionResponse(text="x", raw=raw), a_request())
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


def test_half_of_the_tokens_is_half_known():
    reply = to_reply(CompletionResponse(text="x", raw={"usage": {"input_tokens": 5}}), a_request())
    assert (reply.input_tokens, reply.output_tokens) == (5, None)


def test_log_probabilities_become_those_of_the_choices():
    request = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))
    alternatives = [LogProb(token="Yes", logprob=-0.105), LogProb(token="no", logprob=-2.303)]
    for response in (
        CompletionResponse(text="Yes.", logprobs=[alternatives, [LogProb(token=".", logprob=0.0)]]),
        ChatResponse(message=ChatMessage(content="Yes."), logprobs=[[], alternatives]),
    ):
        reply = to_reply(response, request)
        assert reply.text == "yes"
        assert reply.probabilities == pytest.approx({"yes": 0.9, "no": 0.1}, abs=1e-3)


@pytest.mark.parametrize("logprobs", [None, [], [[]], [[LogProb(token="Maybe", logprob=-0.1)]]])
def test_no_probabilities_where_none_can_be_told(logprobs):
    request = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))
    assert to_reply(CompletionResponse(text="yes", logprobs=logprobs), request).probabilities is None


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


# --- which model ---------------------------------------------------------------------------------------------


@HALVES
def test_settings_are_looked_up_at_each_call(ask):
    judge = LlamaIndexLLM()
    assert judge.model == "Settings.llm"
    for name in ("first", "second"):
        Settings.llm = llm = Chatting(truth, name=name)
        ask(judge, a_request())
        assert judge.model == name
        assert len(llm.script.prompts) == 1


@HALVES
def test_settings_llm_keeps_its_callback_manager(ask):
    Settings.llm = llm = Chatting(truth)
    Settings.callback_manager = CallbackManager()
    before = llm.callback_manager
    ask(LlamaIndexLLM(), a_request())
    assert llm.callback_manager is before


@HALVES
def test_no_llm_anywhere_is_said_with_what_to_set(ask, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llama_index.llms.openai", None)  # LlamaIndex's own default
    with pytest.raises(ValueError, match=r"^llm: none was given, .* set llama_index\.core\.Settings\.llm"):
        ask(LlamaIndexLLM(), a_request())


def test_what_is_no_llm_is_refused():
    with pytest.raises(TypeError, match="llm: str is no LlamaIndex LLM"):
        LlamaIndexLLM("gpt-5")
    with pytest.raises(ValueError, match="asking"):
        LlamaIndexLLM(Wet(), asking="nicely")
    with pytest.raises(ValueError, match="max_input_tokens"):
        LlamaIndexLLM(Wet(), max_input_tokens=0)


@HALVES
@pytest.mark.parametrize("model", [Chatting, Completing])
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
    ("window", "output", "given", "limit"),
    [(3900, 256, None, None), (128_000, 4_000, None, 124_000), (8_000, -1, None, 8_000), (8_000, 1_000, 50, 50)],
)
def test_the_longest_prompt(window, output, given, limit):
    class Sized(Wet):
        @property
        def metadata(self):
            return LLMMetadata(context_window=window, num_output=output)

    assert LlamaIndexLLM(Sized(), max_input_tokens=given).max_input_tokens == limit


def test_the_longest_prompt_of_no_model_is_unknown():
    assert LlamaIndexLLM().max_input_tokens is None


# --- where it runs -------------------------------------------------------------------------------------------


def test_a_sync_only_model_is_called_from_threads_side_by_side():
    together = threading.Barrier(5, timeout=30)  # passed only if five calls are under way at once

    def reply(request):
        together.wait()
        return truth(request)

    llm = Completing(reply)
    judge = LlamaIndexLLM(llm)

    async def five():
        return await asyncio.gather(*(judge.agenerate(a_request()) for _ in range(5)))

    assert len(asyncio.run(five())) == 5
    assert llm.script.halves == [("sync", False)] * 5


def test_a_model_with_an_async_half_is_awaited_on_the_callers_loop():
    llm = Chatting(truth)
    judge = LlamaIndexLLM(llm)

    async def main():
        await judge.agenerate(a_request())
        await asyncio.gather(judge.agenerate(a_request()), judge.agenerate(a_request()))
        return asyncio.get_running_loop()

    loop = asyncio.run(main())
    assert llm.script.halves == [("async", True)] * 3
    assert set(llm.script.loops) == {loop}


def test_a_second_loop_never_awaits_the_model():
    llm = Chatting(truth)
    judge = LlamaIndexLLM(llm)
    for _ in range(3):
        asyncio.run(judge.agenerate(a_request()))
    assert [half for half, _ in llm.script.halves] == ["async", "sync", "sync"]


def test_the_loop_that_made_the_adapter_is_its_home():
    """A notebook: the adapter is made inside the running loop, and a sync wrapper runs another loop in a thread."""
    llm = Chatting(truth)

    async def notebook():
        judge = LlamaIndexLLM(llm)
        thread = threading.Thread(target=lambda: asyncio.run(judge.agenerate(a_request())))
        thread.start()
        await asyncio.to_thread(thread.join)
        await judge.agenerate(a_request())

    asyncio.run(notebook())
    assert [half for half, _ in llm.script.halves] == ["sync", "async"]


def test_every_adapter_of_a_model_has_the_same_home():
    """Each evaluator makes an adapter of its own: two of them on two loops must not both await the model."""
    llm = Chatting(truth)
    for _ in range(3):
        asyncio.run(LlamaIndexLLM(llm).agenerate(a_request()))
    assert [half for half, _ in llm.script.halves] == ["async", "sync", "sync"]
    assert len(set(llm.script.loops) - {None}) == 1


def test_settings_that_change_and_change_back_do_not_move_a_model():
    one, other = Chatting(truth), Chatting(truth)
    judge = LlamaIndexLLM()
    for llm in (one, other, one):
        Settings.llm = llm
        asyncio.run(judge.agenerate(a_request()))
    assert [half for half, _ in one.script.halves] == ["async", "sync"]
    assert [half for half, _ in other.script.halves] == ["async"]


def test_what_is_known_of_a_model_goes_with_it():
    gc.collect()
    before = len(borrowed._HOMES)
    asyncio.run(LlamaIndexLLM(Chatting(truth)).agenerate(a_request()))
    gc.collect()
    assert len(borrowed._HOMES) == before


@pytest.mark.parametrize(
    ("window", "output", "limit"), [(4096, 256, 3840), (3900, 256, None), (-1, 256, None), (0, 256, None), (9, 9, None)]
)
def test_a_limit_that_leaves_no_room_is_no_limit(window, output, limit):
    class Sized(Chatting):
        @property
        def metadata(self):
            return LLMMetadata(context_window=window, num_output=output, is_chat_model=True)

    assert LlamaIndexLLM(Sized(truth)).max_input_tokens == limit


@pytest.mark.parametrize(("in_threads", "half"), [(True, "sync"), (False, "async")])
def test_the_user_may_say_where(in_threads, half):
    llm = Chatting(truth)
    judge = LlamaIndexLLM(llm, in_threads=in_threads)
    for _ in range(2):
        asyncio.run(judge.agenerate(a_request()))
    assert [used for used, _ in llm.script.halves] == [half, half]


def test_a_model_that_overrides_only_acomplete_is_still_sync_when_asked_by_chat():
    class Half(Wet):
        @llm_completion_callback()
        async def acomplete(self, prompt, formatted=False, **kwargs):
            raise AssertionError("its achat calls chat, which calls complete")

    judge = LlamaIndexLLM(Half(chat_model=True))
    assert asyncio.run(judge.agenerate(LLMRequest("demo.ask", "", "Is it? JSON", {}))).text == '{"answer": "yes"}'


@HALVES
def test_what_the_model_raises_is_raised(ask):
    with pytest.raises(ConnectionError, match="refused"):
        ask(LlamaIndexLLM(Chatting(lambda request: ConnectionError("refused"))), a_request())
