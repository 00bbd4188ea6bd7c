"""What a LangChain model answered, as a reply: text, tokens and log-probabilities of the raw message."""

import json
from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage

from ragstone import LLMReply, LLMRequest
from ragstone.asking.adapting import read_reply
from ragstone.asking.values import as_count, as_dict, as_list
from ragstone.clients.chat import read_completion, reasoning
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
    return _reply(text_of(answer), answer, request, _tool_calls(answer))


def read_structured(answer: object, request: LLMRequest) -> LLMReply:
    """Return the reply that is in the answer of `with_structured_output(schema, include_raw=True)`.

    It is read from the raw message: the arguments of its one tool call, else its text. What was parsed of it is
    taken only where the message holds nothing of the kind: LangChain's parsers complete JSON that was cut off.

    Raises:
        TypeError: It holds no message.
    """
    parts = as_dict(answer)
    message, parsed = parts.get("raw"), parts.get("parsed")
    if not isinstance(message, BaseMessage):
        raise TypeError(f"with_structured_output answered with {type(answer).__name__}, without a raw message")
    text = text_of(message)
    calls = _tool_calls(message)
    if calls:
        text = calls[0] if len(calls) == 1 else "\n".join(calls)  # several are no answer, and do not parse
    elif parsed is not None and "{" not in text:
        text = json.dumps(parsed)
    return _reply(text, message, request)


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
    if _was_cut_off(message):  # streamed arguments have been completed then
        return invalid or ["" for _ in message.tool_calls]
    return [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls] + invalid


def _was_cut_off(message: BaseMessage) -> bool:
    ended = (message.response_metadata.get(key) for key in ("finish_reason", "stop_reason", "done_reason"))
    return any(isinstance(reason, str) and reason.lower() in ("length", "max_tokens") for reason in ended)


def _reasoning(message: BaseMessage) -> str:
    """Return the thoughts that a provider keeps apart from a message's text; "" where there are none."""
    if _was_cut_off(message):
        return ""
    blocks = [as_dict(block) for block in as_list(cast("object", message.content))]
    thoughts = [block.get("reasoning") or block.get("thinking") for block in blocks]
    texts = [text for text in thoughts if isinstance(text, str)]
    return "".join(texts) or reasoning(as_dict(message.additional_kwargs))


def _reply(text: str, message: BaseMessage, request: LLMRequest, calls: Sequence[str] = ()) -> LLMReply:
    usage = as_dict(getattr(message, "usage_metadata", None))
    return read_reply(
        text,
        request,
        tool_calls=calls,
        reasoning=_reasoning(message),
        input_tokens=as_count(usage.get("input_tokens")),
        output_tokens=as_count(usage.get("output_tokens")),
        logprobs=message.response_metadata.get("logprobs"),
    )
