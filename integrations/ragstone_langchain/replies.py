"""What a LangChain model answered, as a reply: text, tokens and log-probabilities of the raw message."""

import json
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage

from ragstone import LLMReply, LLMRequest
from ragstone.clients.chat import read_completion, reasoning, with_function_call
from ragstone.judging.adapting import read_reply, schema_name, was_cut_off, why_it_ended
from ragstone.judging.values import as_count, as_dict, as_list
from ragstone_langchain.messages import text_of


def read_plain(answer: object, request: LLMRequest) -> LLMReply:
    """Return the reply that is in a message or a text: its text, else its one tool call, else its reasoning.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(answer, str):
        return read_reply(answer, request)
    if not isinstance(answer, BaseMessage):
        raise TypeError(
            f"the model answered with {type(answer).__name__}, not with a message or text: pass the model itself, "
            "without with_structured_output or a parser behind it"
        )
    return _reply(text_of(answer), answer, request)


def read_structured(answer: object, request: LLMRequest) -> LLMReply:
    """Return the reply that is in the answer of `with_structured_output(schema, include_raw=True)`.

    It is read from the raw message: the arguments of its one call of the tool that stands for the schema, else as
    `read_plain` does. A text beside that call is ignored, unless it is another answer: then there is none. What was
    parsed of the message is taken only where it holds nothing of the kind: LangChain's parsers complete JSON that was
    cut off.

    Raises:
        TypeError: It holds no message.
    """
    parts = as_dict(answer)
    message, parsed = parts.get("raw"), parts.get("parsed")
    if not isinstance(message, BaseMessage):
        raise TypeError(f"with_structured_output answered with {type(answer).__name__}, without a raw message")
    text = text_of(message)
    if parsed is not None and "{" not in text and not _tool_calls(message):
        text = json.dumps(parsed)
    return _reply(text, message, request, must_call=_calls(message, schema_name(request)))


def read_unfinished(error: Exception, request: LLMRequest) -> LLMReply | None:
    """Return the reply that an error brings along; None if it brings none.

    OpenAI's client raises when structured output was cut off, and hands over what there is of it: a reply that was
    paid for, and that cannot be read.
    """
    dump = getattr(getattr(error, "completion", None), "model_dump", None)
    return read_completion(as_dict(dump() if callable(dump) else None), request)


def _tool_calls(message: BaseMessage) -> list[str]:
    """Return the arguments of each tool call as JSON, as the model wrote them where they are not whole."""
    if not isinstance(message, AIMessage):
        return []
    invalid = [call.get("args") or "" for call in message.invalid_tool_calls]
    if was_cut_off(_why_it_ended(message)):  # streamed arguments have been completed then
        return invalid or ["" for _ in message.tool_calls]
    calls = [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls] + invalid
    return with_function_call(calls, as_dict(message.additional_kwargs))


def _calls(message: BaseMessage, tool: str) -> bool:
    calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
    return any(call["name"] == tool for call in calls)


def _why_it_ended(message: BaseMessage) -> tuple[str, ...]:
    beside = as_dict(message.additional_kwargs)
    return why_it_ended({"refusal": beside.get("refusal"), **as_dict(message.response_metadata)}.get)


def _reasoning(message: BaseMessage) -> str:
    """Return the thoughts that a provider keeps apart from a message's text; "" where there are none."""
    blocks = [as_dict(block) for block in as_list(cast("object", message.content))]
    thoughts = [block.get("reasoning") or block.get("thinking") for block in blocks]
    texts = [text for text in thoughts if isinstance(text, str)]
    return "".join(texts) or reasoning(as_dict(message.additional_kwargs))


def _reply(text: str, message: BaseMessage, request: LLMRequest, *, must_call: bool = False) -> LLMReply:
    usage = as_dict(getattr(message, "usage_metadata", None))
    return read_reply(
        text,
        request,
        tool_calls=_tool_calls(message),
        must_call=must_call,
        reasoning=_reasoning(message),
        ended=_why_it_ended(message),
        input_tokens=as_count(usage.get("input_tokens")),
        output_tokens=as_count(usage.get("output_tokens")),
        logprobs=message.response_metadata.get("logprobs"),
    )
