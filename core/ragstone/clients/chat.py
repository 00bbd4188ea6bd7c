"""A request to the judge as the body of a chat completion, and the answer as a reply: pure functions."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from ragstone.adapters.blocks import text_of_blocks
from ragstone.adapters.chat_models import (
    NO_SYSTEM,
    is_constrained,
    letters,
    read_reply,
    reasoning,
    schema_name,
    spelled_out,
    why_it_ended,
    without_system,
)
from ragstone.clients.access import Access, missing, read_json
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.refusals import REFUSALS, is_about_content
from ragstone.plain import as_dict, as_list

Droppable = Literal["response_format", "temperature", "seed", "logprobs", "system"]
"""What a request can do without, when the server does not take it."""

_MENTIONS: dict[Droppable, re.Pattern[str]] = {
    "response_format": re.compile(r"response_format|schema|structured|grammar|guided", re.IGNORECASE),
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
    "logprobs": re.compile(r"log_?prob", re.IGNORECASE),
    "system": re.compile(rf"^messages\[0\]\.role$|{NO_SYSTEM.pattern}", re.IGNORECASE),
}
MOST_LOGPROBS = 20
"""The number of alternatives of a token to ask for first: OpenAI's maximum."""
# Newer models, and older releases of vLLM, take so many.
_FEWER_LOGPROBS = 5


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A chat completion to ask for."""

    # The request's JSON.
    body: dict[str, Any]
    # The parameters that it uses and could do without.
    optional: frozenset[Droppable]


def chat_call(
    model: str, request: LLMRequest, dropped: AbstractSet[str] = frozenset(), top_logprobs: int = MOST_LOGPROBS
) -> ChatCall:
    """Return the call that puts `request` to `model`, without the parameters in `dropped`.

    There is no limit on the reply's length: the parameter's name differs between servers, and a limit makes
    reasoning models answer nothing. The seed is the sample's index, so that several draws differ and recur.
    """
    constrained = is_constrained(request)
    wanted: dict[Droppable, dict[str, Any]] = {"temperature": {"temperature": request.temperature}}
    if request.temperature > 0:
        wanted["seed"] = {"seed": request.sample_index}
    if request.choices is not None:
        wanted["logprobs"] = {"logprobs": True, "top_logprobs": top_logprobs}
    if constrained:
        # OpenAI refuses a schema as strict that leaves anything open, such as a map with free keys
        schema = {"name": schema_name(request), "schema": request.schema, "strict": is_closed(request.schema)}
        wanted["response_format"] = {"response_format": {"type": "json_schema", "json_schema": schema}}
    if "response_format" in dropped:
        request = replace(request, user=spelled_out(request))
    wanted["system"] = {"messages": _messages(request)}
    body: dict[str, Any] = {"model": model, "messages": _messages(without_system(request))}
    used = frozenset[Droppable](name for name in wanted if name not in dropped)
    for name in used:
        body.update(wanted[name])
    return ChatCall(body, used)


def _messages(request: LLMRequest) -> list[dict[str, str]]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, {"role": "user", "content": request.user}]


def is_closed(schema: object) -> bool:
    """Whether every object in a JSON Schema requires all its properties and allows no others.

    Example:
        >>> is_closed({"type": "object", "properties": {}, "additionalProperties": False})
        True
        >>> is_closed({"type": "object", "additionalProperties": {"type": "string"}})
        False
    """
    if isinstance(schema, list):
        return all(is_closed(item) for item in cast("list[object]", schema))
    node = as_dict(schema)
    if node.get("type") == "object" or "properties" in node:
        required = {item for item in as_list(node.get("required")) if isinstance(item, str)}
        if node.get("additionalProperties") is not False or required != set(as_dict(node.get("properties"))):
            return False
    return all(is_closed(value) for value in node.values())


def refused(status: int, answer: object, call: ChatCall) -> Droppable | None:
    """Return which of a call's optional parameters a server's error names; None if it names none.

    It names one by its `param` or `code`. Where it has neither, a word of its message counts, but only one that stands
    nowhere in what was asked: the message may quote that. An error about the text itself (too long, moderated), or of
    the server's own (5xx), names no parameter.
    """
    # llama.cpp answers so where a chat template takes no system message.
    if status == 500:
        call = replace(call, optional=call.optional & {"system"})
    elif status not in REFUSALS:
        return None
    error = as_dict(answer)
    error = as_dict(error.get("error")) or error
    param, code = (text if isinstance(text := error.get(name), str) else "" for name in ("param", "code"))
    if is_about_content(code):
        return None
    named = _first_mentioned(param, call, "") or _first_mentioned(code, call, "")
    message = " ".join(_texts_in_error(answer))
    if named or param or is_about_content(message):
        return named
    asked = " ".join(_texts_in_error([as_dict(part).get("content") for part in as_list(call.body.get("messages"))]))
    # "no such model: seed-7b" is not about the seed.
    model = re.escape(str(call.body["model"]))
    return _first_mentioned(re.sub(rf"(?<!\w){model}(?!\w)", "", message), call, asked)


def fewer_logprobs(asked: int, answer: object) -> int | None:
    """Return the number of log-probabilities to ask for after an error; None where it is not about the number.

    It is the largest one below `asked` that the error names, else 5, as long as that is fewer.

    Example:
        >>> fewer_logprobs(20, "top_logprobs must be between 0 and 8"), fewer_logprobs(20, {"param": "top_logprobs"})
        (8, 5)
        >>> fewer_logprobs(20, "You are not allowed to request logprobs from this model") is None
        True
    """
    why = " ".join(_texts_in_error(answer))
    if not re.search(r"top.?log_?prob|max.?log_?prob|integer|at most|maximum|greater|less|between", why, re.IGNORECASE):
        return None
    named = [int(number) for number in re.findall(r"(?<![\w.-])\d{1,3}(?![\w-])", why)]
    fewer = max([number for number in named if 0 < number < asked], default=_FEWER_LOGPROBS)
    return fewer if fewer < asked else None


def why_refused(answer: object) -> str:
    """The message of a server's error, or all of it."""
    error = as_dict(answer)
    message = (as_dict(error.get("error")) or error).get("message")
    return message if isinstance(message, str) else str(answer)


def _first_mentioned(text: str, call: ChatCall, asked: str) -> Droppable | None:
    """Return the parameter that is named first: what comes later may be a list of what the server does take."""
    asked = letters(asked)
    first: tuple[int, Droppable] | None = None
    for name in call.optional:
        places = [match.start() for match in _MENTIONS[name].finditer(text) if letters(match[0]) not in asked]
        if places and (first is None or places[0] < first[0]):
            first = places[0], name
    return None if first is None else first[1]


def _texts_in_error(answer: object) -> list[str]:
    """Return the strings of an error's body, but not those of the request that it may repeat ("input")."""
    if isinstance(answer, str):
        return [answer]
    values = [value for key, value in as_dict(answer).items() if key not in ("input", "ctx", "body")]
    return [text for value in values or as_list(answer) for text in _texts_in_error(value)]


def read_chat(content: bytes, request: LLMRequest, server: Access) -> LLMReply:
    """Return the reply that is in the body of a chat completion.

    A cut-off reply is text too (possibly ""), and a refusal is none; `ended` says which it is. `read_reply` says what
    is taken off, and when a tool call or the reasoning is the reply.

    Raises:
        AnswerError: The body is not a chat completion.
    """
    body = read_json(content, server)
    reply = read_completion(body, request)
    if reply is None:
        raise missing(body, "choices", server)
    return reply


def read_completion(body: dict[str, object], request: LLMRequest) -> LLMReply | None:
    """Return the reply that is in a chat completion; None if it holds none."""
    choices = as_list(body.get("choices"))
    first = as_dict(choices[0]) if choices else {}
    if not first:
        return None
    message = as_dict(first.get("message"))
    return read_reply(
        text_of_blocks(message.get("content"), pieces=True) or "",
        request,
        tool_calls=_tool_calls(message),
        reasoning=reasoning(message),
        ended=why_it_ended(message, first),
        usages=[body.get("usage")],
        logprobs=first.get("logprobs"),
    )


def _tool_calls(message: dict[str, object]) -> list[str]:
    """Return the arguments of each tool call in a chat completion's message, as the model wrote them."""
    functions = [as_dict(as_dict(call).get("function")) for call in as_list(message.get("tool_calls"))]
    return [str(function.get("arguments") or "") for function in functions]
