"""One word out of a few: reading it from a model's text, and its probability from log-probabilities."""

import math
import re
from collections.abc import Iterator, Sequence

from ragstone.judging.thoughts import find_thoughts
from ragstone.judging.values import as_dict, as_list

_QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"  # straight, curly and angle quotes
_EMPHASIS = "*_"  # of Markdown
_ENDS = (".", "!", "\u3002", "\uff01")  # one of these may stand behind a choice; the last two are Chinese
_TOKEN_AROUND = _QUOTES + _EMPHASIS + "▁Ġ"  # how some servers spell a token's leading space
_SPECIAL_TOKEN = re.compile(r"<[^<>\s]{1,40}>")
_AMBIGUOUS = 0.05


def choose(text: str, choices: Sequence[str]) -> str:
    """Return the choice that `text` is; `text` itself if it is none.

    Case does not matter, nor quotes and Markdown emphasis around it, nor one full stop or exclamation mark.

    Example:
        >>> choose('**"Yes."**', ("yes", "no")), choose("Yes, but", ("yes", "no"))
        ('yes', 'Yes, but')
    """
    bare = _unquoted(text)
    if bare.endswith(_ENDS):
        bare = _unquoted(bare[:-1])
    matches = [choice for choice in choices if choice.casefold() == bare.casefold()]
    return matches[0] if len(matches) == 1 else text


def _unquoted(text: str) -> str:
    """Return `text` without space, and pairs of quotes and emphasis, around it."""
    start, end = 0, len(text)
    while start < end:
        first, last = text[start], text[end - 1]
        if first.isspace():
            start += 1
        elif last.isspace():
            end -= 1
        elif end - start > 2 and ((first in _QUOTES and last in _QUOTES) or (first in _EMPHASIS and first == last)):
            start, end = start + 1, end - 1
        else:
            break
    return text[start:end]


def choice_probabilities(logprobs: object, choices: Sequence[str]) -> dict[str, float] | None:
    r"""Return the probability of each choice, from the log-probabilities of the reply's first word.

    With $T$ the alternatives of the first token that carries text, $m(c)$ sums $e^{\ell_t}$ over the tokens
    $t \in T$ that are the choice $c$ or begin $c$ and no other choice, ignoring case, space and quotes. The
    result is $m(c) / \sum m$, in 0..1.

    Args:
        logprobs: The `logprobs` of a chat completion's choice.
        choices: The words.

    Returns:
        None where the first token does not tell: no log-probabilities came, none of the choices has any mass,
        or more than 5 % of it is on tokens that begin several choices ("n" of "no" and "none").

    Example:
        >>> first = {"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "no", "logprob": -2.4}]}
        >>> p = choice_probabilities({"content": [first]}, ("yes", "no"))
        >>> round(p["yes"], 2)
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


def answer_logprobs(logprobs: object, answer: str) -> object:
    """Return the part of a chat completion's log-probabilities that belongs to the answer; None if it is not there.

    Servers give those of the thoughts too, even where they take the thoughts themselves out of the text.

    Args:
        logprobs: The `logprobs` of a chat completion's choice.
        answer: The choice that was read.

    Example:
        >>> tokens = [{"token": token} for token in ("No", "?", "</think>", "yes", ".")]
        >>> [token["token"] for token in answer_logprobs({"content": tokens}, "yes")["content"]]
        ['yes', '.']
        >>> answer_logprobs({"content": tokens[:2]}, "yes")
    """
    positions = [as_dict(position) for position in as_list(as_dict(logprobs).get("content"))]
    texts = [token if isinstance(token := position.get("token"), str) else "" for position in positions]
    thoughts = find_thoughts("".join(texts))
    first, at = 0, 0
    while thoughts is not None and first < len(texts) and at < thoughts.end:
        at += len(texts[first])
        first += 1
    spelled = _bare(_SPECIAL_TOKEN.sub("", "".join(texts[first:])), _TOKEN_AROUND + "".join(_ENDS))
    # some servers give the first tokens only
    return {"content": positions[first:]} if spelled and answer.casefold().startswith(spelled) else None


def _first_word(logprobs: object) -> Iterator[tuple[str, float]]:
    """Yield the alternatives for the first token that is more than space and quotes, with probabilities."""
    for position in as_list(as_dict(logprobs).get("content")):
        sampled = as_dict(position)
        if not _token(sampled):
            continue
        options = [as_dict(option) for option in as_list(sampled.get("top_logprobs"))]
        if sampled.get("token") not in [option.get("token") for option in options]:
            options.append(sampled)  # a token drawn from below the top ones
        for option in options:
            logprob = option.get("logprob")
            word = _token(option)
            if word and isinstance(logprob, int | float) and math.isfinite(logprob):
                yield word, math.exp(min(logprob, 0.0))
        return


def _token(option: dict[str, object]) -> str:
    token = option.get("token")
    return _bare(token, _TOKEN_AROUND) if isinstance(token, str) else ""


def _bare(text: str, around: str) -> str:
    """Return `text` case-folded, without the given characters and space around it."""
    previous = None
    while text != previous:
        previous, text = text, text.strip().strip(around)
    return text.casefold()
