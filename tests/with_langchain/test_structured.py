"""Structured output where the model has it, the schema in the prompt where it has not, and no guess in between."""

import asyncio
from enum import Enum

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from ragstone import ContextRelevancy, LLMRequest, Sample
from ragstone.adapters.chat_models import spelled_out
from ragstone.judging.reply import listing, record, whole
from ragstone_langchain import LangChainLLM
from ragstone_langchain.models import read_plain, read_structured

from .scripted import WRAPPERS, Script, ToolChat, message

IDS = {"ids": [1]}
REQUEST = LLMRequest("demo.ids", "Answer.", "Which?", record(ids=listing(whole(1, 2))))
WORD = LLMRequest("demo.ask", "", "Is it?", {"type": "string", "enum": ["yes", "no"]}, choices=("yes", "no"))


def asked(kind: str, request=REQUEST, **options) -> Script:
    script = Script("Yes." if request.choices else IDS)
    LangChainLLM(WRAPPERS[kind](script), **options).generate(request)
    return script


def test_a_model_with_tools_gets_the_schema_as_its_tool_and_others_in_the_prompt() -> None:
    script = asked("chat with tools")
    ((tool,),) = script.tools
    assert tool["function"]["name"] == "demo_ids"
    assert tool["function"]["parameters"]["properties"] == REQUEST.schema["properties"]
    assert script.asked == [REQUEST.user]
    assert asked("chat with tools", WORD).tools == [None], "one word needs no structure"
    assert asked("chat with tools", structured_output=False).tools == [None]
    for kind in ("chat without tools", "text model", "with_retry", "with_fallbacks"):
        script = asked(kind)
        assert set(script.tools) <= {None}
        assert script.asked[0].removeprefix("Answer.").strip() == spelled_out(REQUEST)


def call(**args):
    return {"name": "demo_ids", "args": args, "id": "1"}


INVALID = {"name": "demo_ids", "args": '{"ids', "id": "1", "error": "bad"}
LENGTH = {"finish_reason": "length"}
CHUNK = {"name": "demo_ids", "args": '{"ids": [1', "id": "1", "index": 0}
STREAMED = AIMessageChunk("", tool_call_chunks=[CHUNK]) + AIMessageChunk("", response_metadata=LENGTH)
STRUCTURED = [
    (message("I will call it.", tool_calls=[call(ids=[1])]), '{"ids": [1]}'),
    # LangChain's parsers complete what was cut off, and find JSON among prose: here it is as it was written
    (message('{"ids": [1, 2'), '{"ids": [1, 2'),
    (message('Here: {"ids": [1]} or {"ids": [2]}'), 'Here: {"ids": [1]} or {"ids": [2]}'),
    (STREAMED, ""),
    (message(""), '{"ids": [1, 2]}'),  # nothing is written: what was parsed
    (message("", tool_calls=[call(ids=[1]), call(ids=[2])]), ""),
    (message("", tool_calls=[call(ids=[1])], invalid_tool_calls=[INVALID]), ""),
    (message("", tool_calls=[call(ids=[1])], response_metadata=LENGTH), ""),
    # the call is the answer; another answer beside it makes two; a tool that was not asked for is no answer
    (message('{"ids": [1]}', tool_calls=[call(ids=[1, 2])]), ""),
    (message('{"ids": [1]}', tool_calls=[call(ids=[1])]), '{"ids": [1]}'),
]
NOT_PARSED = [(message("Let me", tool_calls=[{**call(ids=[1]), "name": "search"}]), "Let me"), (message(""), "")]
THINKING = {"type": "reasoning", "reasoning": "Hm."}
PLAIN = [
    (message('Hm.</think>{"ids": [1]}'), '{"ids": [1]}'),
    (message("", tool_calls=[call(ids=[1])]), '{"ids": [1]}'),
    (message([THINKING, {"type": "text", "text": '{"ids": [1]}'}]), '{"ids": [1]}'),
    (message([{"type": "thinking", "thinking": '{"ids": [1]}'}]), '{"ids": [1]}'),
    (message([{"type": "reasoning", "reasoning": 'Is it {"ids": [1]}?'}]), ""),
    (message('{"ids": [1]}', tool_calls=[call(ids=[2])]), ""),
    (message("Let me", tool_calls=[call(ids=[1])]), "Let me"),
    (message('{"ids": [1]}', additional_kwargs={"refusal": "I cannot."}), ""),
    (message('Hm.</think>{"ids": [1]}', response_metadata=LENGTH), ""),
    (message('{"ids": [1]}', response_metadata=LENGTH), '{"ids": [1]}'),
]


def test_the_reply_is_what_the_model_wrote_and_reasoning_only_where_there_is_no_text() -> None:
    for raw, text in STRUCTURED:
        answer = {"raw": raw, "parsed": {"ids": [1, 2]}, "parsing_error": None}
        assert read_structured(answer, REQUEST).text == text, raw
    for raw, text in NOT_PARSED:
        assert read_structured({"raw": raw, "parsed": None, "parsing_error": None}, REQUEST).text == text, raw
    for raw, text in PLAIN:
        assert read_plain(raw, REQUEST).text == text, raw


class Reason(Enum):
    SAFETY = 3


ENDED = [
    (message("", response_metadata={"finish_reason": Reason.SAFETY}), "SAFETY"),
    (message("", response_metadata={"stop_reason": "refusal"}), "refusal"),
    (message("", response_metadata={"stopReason": "guardrail_intervened"}), "guardrail_intervened"),
    (message("", response_metadata={"done_reason": "length"}), "length"),
    (message("", response_metadata={"incomplete_details": {"reason": "max_output_tokens"}}), "max_output_tokens"),
    (message("", response_metadata={"prompt_feedback": {"block_reason": "OTHER"}}), "blocked: OTHER"),
    (message("", response_metadata={"prompt_feedback": {"block_reason": 0}, "finish_reason": "STOP"}), "STOP"),
    (message("", response_metadata={"finish_reason": "stop"}, additional_kwargs={"refusal": "No."}), "refusal"),
    (message([{"type": "refusal", "refusal": "No."}], response_metadata={"status": "completed"}), "refusal"),
    (message("{}"), ""),
]


def test_a_reply_says_why_it_ended_by_whatever_name_the_provider_has_for_it() -> None:
    for raw, word in ENDED:
        assert read_plain(raw, REQUEST).ended == read_structured({"raw": raw, "parsed": None}, REQUEST).ended == word


def test_an_answer_without_a_message_is_an_error_and_prose_unparseable() -> None:
    for answer in (None, {"ids": [1]}, {"raw": None, "parsed": None}):
        with pytest.raises(TypeError, match="without a raw message"):
            read_structured(answer, REQUEST)

    class Prose(ToolChat):
        def say(self, messages, kwargs):
            return message("I would say the first one.")

    sample = Sample(user_input="Which?", retrieved_contexts=["This. Not that."])
    outcome = ContextRelevancy(llm=LangChainLLM(Prose())).score(sample)
    assert (outcome.reason, outcome.usage.llm_calls) == ("judge_unparseable", 2)


def test_tokens_are_those_of_the_raw_message() -> None:
    raw = AIMessage('{"ids": [1]}')
    for usage, expected in (
        ({"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}, (5, 2)),
        ({"total_cost": 0}, (None, None)),  # what LangChain makes of a cached message without counts
        (None, (None, None)),
    ):
        raw.usage_metadata = usage
        reply = read_structured({"raw": raw, "parsed": {"ids": [1]}}, REQUEST)
        assert (reply.input_tokens, reply.output_tokens) == expected


def test_a_model_that_says_only_when_asked_that_it_has_no_structure_is_asked_without() -> None:
    class TellsLate(ToolChat):
        def say(self, messages, kwargs):
            if kwargs.get("tools"):
                raise NotImplementedError
            return super().say(messages, kwargs)

    script = Script(IDS)
    judge = LangChainLLM(TellsLate(script=script))
    assert judge.generate(REQUEST).text == asyncio.run(judge.agenerate(REQUEST)).text == '{"ids": [1]}'
    assert script.tools == [None, None]
