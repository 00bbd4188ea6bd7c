"""What every adapter of a chat model does: the schema into the prompt, the bare answer out of the reply."""

import json
import re
from collections.abc import Sequence

from ragstone.asking.choice import answer_logprobs, choice_probabilities
from ragstone.asking.reply import bare_answer, is_answer
from ragstone.judge import LLMReply, LLMRequest

# 403 is OpenAI's for log-probabilities of reasoning models; 500 is llama.cpp's for a schema it cannot convert
REFUSALS = frozenset({400, 403, 404, 422, 500, 501})
"""The HTTP statuses with which servers refuse a parameter that they do not know."""
_IN_PROMPT = "\n\nReply with bare JSON, and nothing before or after it, that matches this JSON Schema:\n"


def spelled_out(request: LLMRequest) -> str:
    """Return the user message for a model that cannot be constrained: with the schema of the reply at its end.

    A request for one of a few words says so itself, and is returned as it is.

    Example:
        >>> print(spelled_out(LLMRequest("demo.ask", "", "Is it?", {"type": "boolean"})).splitlines()[-1])
        {"type": "boolean"}
    """
    if not is_constrained(request):
        return request.user
    return request.user + _IN_PROMPT + json.dumps(request.schema, ensure_ascii=False)


def is_constrained(request: LLMRequest) -> bool:
    """Whether the reply is to match a schema, rather than to be one of a few bare words."""
    return bool(request.schema) and request.choices is None


def schema_name(request: LLMRequest) -> str:
    """Return a name for the request's schema that every provider takes.

    Example:
        >>> schema_name(LLMRequest("demo.ask", "", "", {}))
        'demo_ask'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "_", request.task)[:64] or "reply"


def read_reply(
    written: str,
    request: LLMRequest,
    *,
    tool_calls: Sequence[str] = (),
    reasoning: str = "",
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    logprobs: object = None,
) -> LLMReply:
    r"""Return what a chat model wrote as a reply.

    It is the text without what `ragstone.asking.bare_answer` takes off: thoughts before the answer, a fence around it.
    Where there is no text, it is the arguments of the one tool call; else the reasoning, if that is exactly an answer.
    Whether it is an answer at all is for the metric's parser to say.

    Args:
        written: The model's text.
        request: What it was asked.
        tool_calls: The arguments of each tool that it calls, as JSON.
        reasoning: Its thoughts, where the provider keeps them apart from the text.
        input_tokens: Prompt tokens; None when the provider does not say.
        output_tokens: Reply tokens; None when the provider does not say.
        logprobs: The `logprobs` of a chat completion's choice, if there are any.

    Example:
        >>> read_reply("<think>Hm.</think>Yes.", LLMRequest("demo.ask", "", "", {}, choices=("yes", "no"))).text
        'yes'
    """
    text, _ = bare_answer(written, request.choices)
    if not text.strip():
        if tool_calls:
            text = "\n".join(tool_calls)  # several are no answer, and do not parse
        elif is_answer(reasoning, request.choices):
            text, _ = bare_answer(reasoning, request.choices)
    probabilities = None
    if request.choices is not None and text in request.choices:
        probabilities = choice_probabilities(answer_logprobs(logprobs, text), request.choices)
    return LLMReply(text, input_tokens=input_tokens, output_tokens=output_tokens, probabilities=probabilities)
