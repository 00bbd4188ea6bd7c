"""What every adapter of a chat model does: the schema into the prompt, the answer and its probability out of it."""

import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ragstone.errors import describe
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.reply import (
    EMPHASIS,
    QUOTES,
    STOPS,
    bare_answer,
    find_thoughts,
    is_answer,
    parse_json,
    was_cut_off,
    was_withheld,
)
from ragstone.plain import as_count, as_dict, as_list, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

_log = logging.getLogger(__name__)

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_READ = ("prompt_tokens", "input_tokens", "prompt_token_count")
_WRITTEN = ("completion_tokens", "output_tokens", "candidates_token_count")
_ENDED = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
# Chat templates (Gemma, Mistral), OpenAI, Gemini and Bedrock refuse a system message in these words.
NO_SYSTEM = re.compile(
    r"(?:not|n't) support (?:the )?['\"`]?system\b['\"`]?(?: (?:role|message|prompt|instruction)s?)?"
    r"|system['\"`]? ?(?:role|message|prompt|instruction)s?(?: is| are)? not (?:yet )?(?:supported|enabled|allowed)"
    r"|role:? ['\"`]?system['\"`]? is not (?:supported|allowed)"
    r"|(?:invalid|unknown|unexpected|unsupported) role:? ['\"`]?system\b"
    r"|developer instruction is not enabled|conversation roles must alternate"
    r"|only user and (?:assistant|model) roles are supported|value 'system' at 'messages",
    re.IGNORECASE,
)
# Some servers spell a token's leading space with one of the last two.
_TOKEN_AROUND = QUOTES + EMPHASIS + "▁Ġ"
_SPECIAL_TOKEN = re.compile(r"<[^<>\s]{1,40}>")
_AMBIGUOUS = 0.05
_IN_PROMPT = "\n\nReply with bare JSON, and nothing before or after it, that matches this JSON Schema:\n"


class LeavesOut:
    """What an adapter's model refuses, and is not sent any more. The adapter has a `repr` for the log.

    What it has taken once and then refuses is a matter of that request, and is left out of it alone.

    Attributes:
        left_out_once: What was left out of single requests: the provider's last words by the parameter's name.
    """

    left_out_once: Mapping[str, str] = {}

    _left_out: Mapping[str, str] = {}
    _taken: frozenset[str] = frozenset()

    @property
    def left_out(self) -> Mapping[str, str]:
        """What the model has refused, and is not sent any more: the provider's words by the parameter's name."""
        return self._left_out

    def leave_out(self, names: Mapping[str, str]) -> None:
        """Leave out from now on what the model is known to refuse, with the reasons."""
        self._left_out = {**names, **self._left_out}

    def _took(self, *names: str) -> None:
        """Remember what the model has just taken."""
        if not self._taken.issuperset(names):
            self._taken = self._taken.union(names)

    def _refused(self, name: str, why: str) -> None:
        """Note what the model has just refused; leave it out from now on, and say so, where it never took it."""
        if name in self._taken:
            self.left_out_once = {**self.left_out_once, name: why}
        elif name not in self._left_out:
            # Otherwise another call, in flight at the same time, has noted it already.
            self.leave_out({name: why})
            _log.warning("%s refused %s, going on without: %s", printable(repr(self)), name, printable(why))

    async def _ask_with_system(
        self, ask: Callable[[LLMRequest], Awaitable[LLMReply]], request: LLMRequest, secrets: Sequence[str]
    ) -> LLMReply:
        """Ask with a system message; without one, from then on, where the model refuses it."""
        asked = without_system(request) if "system" in self.left_out else request
        try:
            reply = await ask(asked)
            if asked.system:
                self._took("system")
            return reply
        except Exception as error:
            if not refuses_system(f"{error} {getattr(error, 'body', '')}", asked):
                raise
            refusal = error
        reply = await ask(without_system(request))
        self._refused("system", describe(refusal, secrets))
        return reply


def without_waiting(answer: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing, without an event loop."""
    try:
        answer.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise RuntimeError("a blocking call waited for a loop")


def spelled_out(request: LLMRequest) -> str:
    """Return the user message for a model that cannot be constrained: with the schema of the reply at its end.

    A request for one of a few words says so itself, and is returned as it is.
    """
    if not is_constrained(request):
        return request.user
    return request.user + _IN_PROMPT + json.dumps(request.schema, ensure_ascii=False)


def without_system(request: LLMRequest) -> LLMRequest:
    r"""Return the request with its instructions at the head of the user's message, and none beside it.

    Example:
        >>> without_system(LLMRequest("demo.ask", "Answer.", "Is it?", {})).user
        'Answer.\n\nIs it?'
    """
    return replace(request, system="", user=f"{request.system}\n\n{request.user}") if request.system else request


def as_one_text(request: LLMRequest) -> str:
    """Instructions, data and the reply's schema as one text, for a model that takes no messages."""
    return without_system(replace(request, user=spelled_out(request))).user


def refuses_system(message: str, request: LLMRequest) -> bool:
    """Whether an error's message says that the judge takes no system message, in words that the prompt has not.

    What stands in the prompt may be quoted from there, and says nothing of the judge.

    Example:
        >>> asked = LLMRequest("demo.ask", "Answer.", "Is it?", {})
        >>> refuses_system("System role not supported", asked), refuses_system("unknown model", asked)
        (True, False)
    """
    said = (letters(match[0]) for match in NO_SYSTEM.finditer(message))
    prompt = letters(f"{request.system} {request.user}")
    return bool(request.system) and any(words not in prompt for words in said)


def letters(text: str) -> str:
    """Return the letters of a text alone: a quotation may have other spaces, quotes and escapes."""
    return "".join(filter(str.isalpha, text.casefold()))


def is_constrained(request: LLMRequest) -> bool:
    """Whether the reply is to match a schema, rather than to be one of a few bare words."""
    return bool(request.schema) and request.choices is None


def schema_name(request: LLMRequest) -> str:
    """Return a name for the request's schema that every provider takes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", request.task)[:64] or "reply"


def member(part: object, name: str) -> object:
    """Return a field of a part of a provider's answer, which is a dict or an object; None where it lacks that."""
    return as_dict(part).get(name, getattr(part, name, None))


def why_it_ended(*parts: object) -> str:
    """Return a provider's word for why a reply ended: the one that says most; "" where its answer's parts have none."""
    words: list[str] = []
    for part in parts:
        reasons = [member(part, name) for name in _ENDED]
        # OpenAI's Responses say it here.
        reasons.append(member(member(part, "incomplete_details"), "reason"))
        # Some clients give an enum.
        names = [getattr(reason, "name", reason) for reason in reasons]
        words += [name for name in names if isinstance(name, str)]
        if member(part, "refusal"):
            words.append("refusal")
        # Gemini says it here.
        blocked = member(part, "block_reason") or member(member(part, "prompt_feedback"), "block_reason")
        name = str(getattr(blocked, "name", blocked))
        if blocked and "UNSPECIFIED" not in name:
            words.append(f"blocked: {name}")
    return next((word for tells in (was_withheld, was_cut_off, bool) for word in words if tells(word)), "")


def reasoning(*parts: object) -> str:
    """Return the thoughts that a provider keeps apart from a message's text; "" where its answer's parts have none."""
    texts = (member(part, name) for part in parts for name in _THOUGHTS)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _tokens(usages: Sequence[object]) -> tuple[int | None, int | None]:
    """Return the tokens of prompt and reply, of the first usage that has one of them."""
    for usage in usages:
        counts = _token_count(usage, _READ), _token_count(usage, _WRITTEN)
        if counts != (None, None):
            return counts
    return None, None


def _token_count(usage: object, names: Sequence[str]) -> int | None:
    return next((count for name in names if (count := as_count(member(usage, name))) is not None), None)


def read_reply(
    written: str,
    request: LLMRequest,
    *,
    tool_calls: Sequence[str] = (),
    must_call: bool = False,
    reasoning: str = "",
    ended: str = "",
    usages: Sequence[object] = (),
    logprobs: object = None,
) -> LLMReply:
    r"""The reply that a chat model wrote.

    It is the text without what `ragstone.judging.bare_answer` takes off: thoughts before the answer, a fence around it.
    Where there is no text, it is the arguments of the one tool call; else the reasoning, if that is exactly an answer.
    Nothing is read of two answers, of a reply that the provider
    withheld or the model refused, nor of one that was cut off and holds thoughts: the mark may be one that it quotes.
    Whether it is an answer at all is for the metric's parser to say.

    Args:
        written: The model's text.
        request: What it was asked.
        tool_calls: The arguments of each tool that it calls, as JSON.
        must_call: Whether its answer is to be a tool call; prose beside the call does not matter then.
        reasoning: Its thoughts, where the provider keeps them apart from the text.
        ended: The provider's word for why the reply ended, as `why_it_ended` returns it.
        usages: Where the provider may have counted tokens: the first that holds a count is taken.
        logprobs: The `logprobs` of a chat completion's choice, if there are any.

    Example:
        >>> read_reply("<think>Hm.</think>Yes.", LLMRequest("demo.ask", "", "", {}, choices=("yes", "no"))).text
        'yes'
    """
    text, thought = bare_answer(written, request.choices)
    cut_off = was_cut_off(ended)
    if was_withheld(ended) or (cut_off and thought):
        text = ""
    else:
        text = _only_answer(text, tool_calls, "" if cut_off else reasoning, request.choices, must_call=must_call)
    probabilities = None
    if request.choices is not None and text in request.choices:
        probabilities = choice_probabilities(_answer_logprobs(logprobs, text), request.choices)
    return LLMReply(text, *_tokens(usages), probabilities, ended)


def _only_answer(
    text: str, calls: Sequence[str], reasoning: str, choices: Sequence[str] | None, *, must_call: bool
) -> str:
    """Return the one answer among a text, tool calls and reasoning; "", which no parser reads, if there are two."""
    blank, answers = not text.strip(), is_answer(text, choices)
    if calls and (blank or answers or must_call):
        same = answers and choices is None and is_answer(calls[0]) and parse_json(text) == parse_json(calls[0])
        return calls[0] if len(calls) == 1 and (same or not answers) else ""
    return bare_answer(reasoning, choices)[0] if blank and is_answer(reasoning, choices) else text


def as_rows(vectors: Sequence[Sequence[float]], texts: Sequence[str]) -> "NDArray[np.float32]":
    """Return a framework's vectors as one row per text.

    Raises:
        ValueError: There is not one for each text, or they differ in length.

    Example:
        >>> as_rows([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]).shape, as_rows([], []).shape
        ((2, 2), (0, 0))
    """
    import numpy as np

    lengths = sorted({len(vector) for vector in vectors})
    if len(vectors) != len(texts):
        raise ValueError(f"the embedder returned {len(vectors)} vectors for {len(texts)} texts")
    if len(lengths) > 1:
        raise ValueError(f"the embedder returned vectors of lengths {lengths}, which must be one")
    rows: NDArray[np.float32] = np.asarray(vectors, dtype=np.float32)
    return rows if texts else np.empty((0, 0), dtype=np.float32)


def choice_probabilities(logprobs: object, choices: Sequence[str]) -> dict[str, float] | None:
    r"""Return the probability of each choice, from the log-probabilities of the reply's first word.

    With $T$ the alternatives of the first token that carries text, $m(c)$ sums $e^{\ell_t}$ over the tokens
    $t \in T$ that are the choice $c$ or begin $c$ and no other choice, ignoring case, space and quotes. The
    result is $m(c) / \sum m$, in 0..1. None where the first token does not tell: no log-probabilities came, none of
    the choices has any mass, or more than 5 % of it is on tokens that begin several choices ("n" of "no" and "none").

    Example:
        >>> first = {"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "no", "logprob": -2.4}]}
        >>> round(choice_probabilities({"content": [first]}, ("yes", "no"))["yes"], 2)
        0.91
    """
    mass = dict.fromkeys(choices, 0.0)
    ambiguous = 0.0
    for token, probability in _first_word(logprobs):
        exact = [choice for choice in choices if choice.casefold() == token]
        begun = exact or [choice for choice in choices if choice.casefold().startswith(token)]
        if len(begun) == 1:
            mass[begun[0]] += probability
        elif begun:
            ambiguous += probability
    total = sum(mass.values())
    if total <= 0 or ambiguous > _AMBIGUOUS * (total + ambiguous):
        return None
    return {choice: value / total for choice, value in mass.items()}


def _answer_logprobs(logprobs: object, answer: str) -> object:
    """Return the part of a chat completion's log-probabilities that belongs to the answer; None if it is not there.

    Servers give those of the thoughts too, even where they take the thoughts themselves out of the text.
    """
    positions = [as_dict(position) for position in as_list(as_dict(logprobs).get("content"))]
    texts = [token if isinstance(token := position.get("token"), str) else "" for position in positions]
    thoughts = find_thoughts("".join(texts))
    first, at = 0, 0
    while thoughts is not None and first < len(texts) and at < thoughts[0]:
        at += len(texts[first])
        first += 1
    spelled = _bare_token(_SPECIAL_TOKEN.sub("", "".join(texts[first:])), _TOKEN_AROUND + "".join(STOPS))
    # Some servers give the first tokens only.
    return {"content": positions[first:]} if spelled and answer.casefold().startswith(spelled) else None


def _first_word(logprobs: object) -> Iterator[tuple[str, float]]:
    """Yield the alternatives for the first token that is more than space and quotes, with probabilities."""
    for position in as_list(as_dict(logprobs).get("content")):
        sampled = as_dict(position)
        if not _token(sampled):
            continue
        options = [as_dict(option) for option in as_list(sampled.get("top_logprobs"))]
        if sampled.get("token") not in [option.get("token") for option in options]:
            # The token was drawn from below the top ones.
            options.append(sampled)
        for option in options:
            logprob = option.get("logprob")
            word = _token(option)
            if word and isinstance(logprob, int | float) and math.isfinite(logprob):
                yield word, math.exp(min(logprob, 0.0))
        return


def _token(option: dict[str, object]) -> str:
    token = option.get("token")
    return _bare_token(token, _TOKEN_AROUND) if isinstance(token, str) else ""


def _bare_token(text: str, around: str) -> str:
    """Return a text case-folded, without the given characters and space around it."""
    previous = None
    while text != previous:
        previous, text = text, text.strip().strip(around)
    return text.casefold()
