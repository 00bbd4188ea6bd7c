"""Structured output where the model has it, the schema in the prompt where it has not, and no guess in between."""

import asyncio
from enum import Enum

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from ragstone import ContextRelevancy, LLMRequest, Sample
from ragstone.judging.adapting import spelled_out
from ragstone.judging.reply import listing, record, whole
from ragstone_langchain import LangChainLLM
from ragstone_langchain.models import read_plain, read_structured

from .scripted import WRAPPERS, Script, Told, ToolChat, message

IDS = {"ids": [1]}
REQUEST = LLMRequest("demo.ids", "Answer.", "Which?", record(ids=listing(whole(1, 2))))
SAMPLE = Sample(user_input="Which?", retrieved_contexts=["This. Not that."])


WORD = LLMRequest("demo.ask", "", "Is it?", {"type": "string", "enum": ["yes", "no"]}, choices=("yes", "no"))


def asked(kind: str, request=REQUEST, **options) -> Script:
    script = Script(lambda request: "Yes." if request.choices else IDS)
    Told(WRAPPERS[kind](script), script, **options).generate(request)
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
        assert script.asked == [spelled_out(REQUEST)]


def call(**args):
    return {"name": "demo_ids", "args": args, "id": "1"}


CUT_OFF = {"reason": "max_output_tokens"}
INVALID = {"name": "demo_ids", "args": '{"ids', "id": "1", "error": "bad"}


@pytest.mark.parametrize(
    ("raw", "parsed", "text"),
    [
        (message("I will call it.", tool_calls=[call(ids=[1])]), {"ids": [1]}, '{"ids": [1]}'),
        # LangChain's parsers complete what was cut off, and find JSON among prose: here it is as it was written
        (message('{"ids": [1, 2'), {"ids": [1, 2]}, '{"ids": [1, 2'),
        (message('Here: {"ids": [1]} or {"ids": [2]}'), {"ids": [1]}, 'Here: {"ids": [1]} or {"ids": [2]}'),
        (message("", tool_calls=[call(ids=[1]), call(ids=[2])]), {"ids": [1]}, ""),
        (message("", tool_calls=[call(ids=[1])], invalid_tool_calls=[INVALID]), None, ""),
        (message("", tool_calls=[call(ids=[1])], response_metadata={"finish_reason": "length"}), {"ids": [1]}, ""),
        # the call is the answer; another answer beside it makes two; a tool that was not asked for is no answer
        (message('{"ids": [1]}', tool_calls=[call(ids=[1, 2])]), {"ids": [1, 2]}, ""),
        (message('{"ids": [1]}', tool_calls=[call(ids=[1])]), {"ids": [1]}, '{"ids": [1]}'),
        (message("Let me", tool_calls=[{**call(ids=[1]), "name": "search"}]), None, "Let me"),
        (message(""), None, ""),  # parsed None and parsing_error None: no answer
    ],
)
def test_the_reply_is_what_the_model_wrote(raw, parsed, text) -> None:
    answer = {"raw": raw, "parsed": parsed, "parsing_error": None}
    assert read_structured(answer, REQUEST).text == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (message('Hm.</think>{"ids": [1]}'), '{"ids": [1]}'),
        (message("", tool_calls=[call(ids=[1])]), '{"ids": [1]}'),
        (
            message([{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": '{"ids": [1]}'}]),
            '{"ids": [1]}',
        ),
        (message([{"type": "thinking", "thinking": '{"ids": [1]}'}]), '{"ids": [1]}'),
        (message('{"ids": [1]}', tool_calls=[call(ids=[2])]), ""),
        (message("Let me", tool_calls=[call(ids=[1])]), "Let me"),
        (message('{"ids": [1]}', additional_kwargs={"refusal": "I cannot."}), ""),
        (message('Hm.</think>{"ids": [1]}', response_metadata={"finish_reason": "length"}), ""),
        (message('{"ids": [1]}', response_metadata={"finish_reason": "length"}), '{"ids": [1]}'),
        (message([{"type": "reasoning", "reasoning": 'Is it {"ids": [1]}?'}]), ""),
    ],
)
def test_without_structure_a_tool_call_or_reasoning_is_read_where_there_is_no_text(raw, text) -> None:
    assert read_plain(raw, REQUEST).text == text


class Reason(Enum):
    MAX_TOKENS = 2
    SAFETY = 3


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (message("", response_metadata={"finish_reason": "length"}), "length"),
        (message("", response_metadata={"finish_reason": "MAX_TOKENS"}), "MAX_TOKENS"),
        (message("", response_metadata={"finish_reason": Reason.SAFETY}), "SAFETY"),
        (
            message("", response_metadata={"stop_reason": "model_context_window_exceeded"}),
            "model_context_window_exceeded",
        ),
        (message("", response_metadata={"stop_reason": "refusal"}), "refusal"),
        (message("", response_metadata={"stopReason": "guardrail_intervened"}), "guardrail_intervened"),
        (message("", response_metadata={"done_reason": "length"}), "length"),
        (message("", response_metadata={"incomplete_details": CUT_OFF}), "max_output_tokens"),
        (message("", response_metadata={"incomplete_details": {"reason": "content_filter"}}), "content_filter"),
        (message("", response_metadata={"prompt_feedback": {"block_reason": "OTHER"}}), "blocked: OTHER"),
        (message("", response_metadata={"prompt_feedback": {"block_reason": 0}, "finish_reason": "STOP"}), "STOP"),
        (message("", response_metadata={"finish_reason": "stop"}, additional_kwargs={"refusal": "No."}), "refusal"),
        (message([{"type": "refusal", "refusal": "No."}], response_metadata={"status": "completed"}), "refusal"),
        (message("{}", response_metadata={"finish_reason": "stop"}), "stop"),
        (message("{}"), ""),
    ],
)
def test_a_reply_says_why_it_ended_by_whatever_name_the_provider_has_for_it(raw, word) -> None:
    assert read_plain(raw, REQUEST).ended == word
    assert read_structured({"raw": raw, "parsed": None}, REQUEST).ended == word


def test_an_answer_without_a_message_is_an_error_and_prose_unparseable() -> None:
    for answer in (None, {"ids": [1]}, {"raw": None, "parsed": None}):
        with pytest.raises(TypeError, match="without a raw message"):
            read_structured(answer, REQUEST)

    class Prose(ToolChat):
        def say(self, messages, kwargs):
            return message("I would say the first one.")

    outcome = ContextRelevancy(llm=LangChainLLM(Prose(script=None))).score(SAMPLE)
    assert (outcome.reason, outcome.usage.llm_calls) == ("judge_unparseable", 2)


def test_streamed_arguments_that_were_cut_off_are_no_answer() -> None:
    pieces = [
        AIMessageChunk("", tool_call_chunks=[{"name": "demo_ids", "args": '{"ids": [1', "id": "1", "index": 0}]),
        AIMessageChunk("", response_metadata={"finish_reason": "length"}),
    ]
    whole_message = pieces[0] + pieces[1]
    assert whole_message.tool_calls, "LangChain completed them"
    assert read_structured({"raw": whole_message, "parsed": {"ids": [1]}}, REQUEST).text == ""


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

    script = Script(lambda request: IDS)
    judge = Told(TellsLate(script=script), script)
    assert judge.generate(REQUEST).text == asyncio.run(judge.agenerate(REQUEST)).text == '{"ids": [1]}'
    assert script.tools == [None, None]
