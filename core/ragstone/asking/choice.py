"""One word out of a few: reading it from a model's text, and its probability from log-probabilities."""

import math
from collections.abc import Iterator, Sequence

from ragstone.asking.values import as_dict, as_list

_AROUND = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"  # straight, curly and angle quotes
_TOKEN_AROUND = _AROUND + "▁Ġ*"  # how some servers spell a token's leading space; Markdown's bold
_AMBIGUOUS = 0.05


def choose(text: str, choices: Sequence[str]) -> str:
    """Return the choice that `text` is up to case, quotes and a full stop; `text` itself if it is none.

    Example:
        >>> choose('"Yes."', ("yes", "no")), choose("Yes, but", ("yes", "no"))
        ('yes', 'Yes, but')
    """
    bare = _bare(_bare(text, _AROUND).removesuffix("."), _AROUND)
    found = [choice for choice in choices if choice.casefold() == bare]
    return found[0] if len(found) == 1 else text


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
