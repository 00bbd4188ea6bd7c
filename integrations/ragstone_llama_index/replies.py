"""What a LlamaIndex model answered, as a reply to the judge's request."""

import json
from collections.abc import Iterator
from functools import partial
from typing import cast

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.adapting import read_reply, why_it_ended
from ragstone.judging.values import as_count, as_dict, as_list

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count")


def to_reply(response: ChatResponse | CompletionResponse, request: LLMRequest) -> LLMReply:
    """Return a model's answer as a reply, with its token counts and, where it has some, log-probabilities.

    It is the answer's text; without one, its one tool call, or its reasoning if that is exactly an answer.

    Example:
        >>> answer = CompletionResponse(text="Yes.", raw={"usage": {"prompt_tokens": 9, "completion_tokens": 1}})
        >>> reply = to_reply(answer, LLMRequest("demo.ask", "", "", {}, choices=("yes", "no")))
        >>> reply.text, reply.input_tokens, reply.output_tokens
        ('yes', 9, 1)
    """
    text = response.message.content if isinstance(response, ChatResponse) else response.text
    read, written = token_counts(response)
    return read_reply(
        text or "",
        request,
        tool_calls=_tool_calls(response),
        reasoning=_reasoning(response),
        ended=_why_it_ended(response),
        input_tokens=read,
        output_tokens=written,
        logprobs=_logprobs(response),
    )


def token_counts(response: ChatResponse | CompletionResponse) -> tuple[int | None, int | None]:
    """Return the tokens of prompt and answer as the provider counted them; None for what it does not say.

    They are read from the answer itself: `TokenCountingHandler` counts a call of many models two or three times.
    """
    for place in _places(response):
        counts = _first(place, _INPUT), _first(place, _OUTPUT)
        if counts != (None, None):
            return counts
    return None, None


def _places(response: ChatResponse | CompletionResponse) -> Iterator[object]:
    yield _member(response.raw, "usage")
    yield _member(response.raw, "usage_metadata")
    yield _member(response, "additional_kwargs")
    if isinstance(response, ChatResponse):
        yield _member(response.message, "additional_kwargs")


def _first(place: object, names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := as_count(_member(place, name))) is not None), None)


def _member(thing: object, name: str) -> object:
    """Return a value out of what a provider's client answered, which is a dict or an object."""
    values = as_dict(thing)
    return values.get(name) if values else getattr(thing, name, None)


def _logprobs(response: ChatResponse | CompletionResponse) -> object:
    """Return the log-probabilities in the form of a chat completion's choice.

    LlamaIndex keeps the alternatives of each token and not which of them was drawn: that is taken to be the first.
    """
    content: list[object] = []
    for alternatives in response.logprobs or ():
        options = [{"token": option.token, "logprob": option.logprob} for option in alternatives]
        content.extend({**option, "top_logprobs": options} for option in options[:1])
    return {"content": content}


def _tool_calls(response: ChatResponse | CompletionResponse) -> list[str]:
    """Return the arguments of each tool call as JSON: out of the message's blocks, or where older releases put them."""
    if not isinstance(response, ChatResponse):
        return []
    blocks = [block for block in response.message.blocks if _member(block, "block_type") == "tool_call"]
    arguments = [_member(block, "tool_kwargs") for block in blocks]
    if not arguments:
        calls = as_list(response.message.additional_kwargs.get("tool_calls"))
        arguments = [_member(_member(call, "function"), "arguments") for call in calls]
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in arguments]


def _reasoning(response: ChatResponse | CompletionResponse) -> str:
    """Return the thoughts that a provider keeps apart from the text; "" where there are none."""
    if not isinstance(response, ChatResponse):
        return ""
    blocks = [block for block in response.message.blocks if _member(block, "block_type") == "thinking"]
    texts = [_member(block, "content") for block in blocks]
    for place in (response.message.additional_kwargs, _member(_choice(response), "message")):
        texts += [_member(place, name) for name in ("reasoning_content", "reasoning", "thinking")]
    return next((text for text in texts if isinstance(text, str) and text), "")


def _choice(response: ChatResponse | CompletionResponse) -> object:
    """Return the first choice of the raw answer, if it has the form of a chat completion."""
    choices = _member(response.raw, "choices")
    return next(iter(cast("list[object]", choices)), None) if isinstance(choices, list) else None


def _why_it_ended(response: ChatResponse | CompletionResponse) -> tuple[str, ...]:
    choice = _choice(response)
    places = (response.raw, choice, _member(choice, "message"))
    return tuple(word for place in places for word in why_it_ended(partial(_member, place)))
