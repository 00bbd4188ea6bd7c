"""The probability of each of several words as the next thing a language model says.

What is measured is the model's own distribution, before any grammar: P(word) is the mass of the tokens that
begin the word (any case, any leading space), divided by the mass of all the words. So "Yes", "yes" and " yes"
are one answer, and what the model would rather have said ("The context...") drops out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

Candidates = Iterable[tuple[str, float]]
"""Next tokens with their probabilities."""

_NEGLIGIBLE = 0.01
"""A shared beginning with less than this part of the mass is not worth a call of its own."""


def choice_probabilities(ask: Callable[[str], Candidates], choices: Sequence[str]) -> dict[str, float] | None:
    """Return the probability of each choice, summing to 1; None when the model would say none of them.

    Choices that begin with the same token ("consistent", "contradicted": "con") are told apart by asking
    again after that token; a choice that begins another ("no", "no answer") has what does not go on.

    Args:
        ask: Returns the next tokens and their probabilities after the given beginning of the reply.
        choices: The words; at least two, different also when case is ignored.

    Raises:
        ValueError: The choices are fewer than two, or one is empty or twice there.

    Example:
        >>> tokens = [("Yes", 0.25), ("yes", 0.125), ("The", 0.5), (" no", 0.125)]
        >>> choice_probabilities(lambda beginning: tokens, ["yes", "no"])
        {'yes': 0.75, 'no': 0.25}
    """
    rest = {choice: choice.strip().casefold() for choice in choices}
    if len(choices) < 2 or not all(rest.values()) or len(set(rest.values())) < len(choices):
        raise ValueError(f"choices must be two or more words that differ not only in case: {choices!r}")
    masses = _masses(ask, "", rest)
    total = sum(masses.values())
    return {choice: mass / total for choice, mass in masses.items()} if total else None


def _masses(ask: Callable[[str], Candidates], beginning: str, rest: Mapping[str, str]) -> dict[str, float]:
    """Return the mass of each choice, `rest` being what of it is still unsaid after `beginning`."""
    masses = dict.fromkeys(rest, 0.0)
    shared: list[tuple[str, float, list[str]]] = []
    said = next((choice for choice, left in rest.items() if not left), None)
    for token, probability in ask(beginning):
        text = token if beginning else token.lstrip()
        piece = text.casefold()
        fits = [choice for choice, left in rest.items() if piece and left.startswith(piece)]
        if len(fits) > 1:
            shared.append((text, probability, fits))
        elif fits:
            masses[fits[0]] += probability
        elif said is not None:
            masses[said] += probability  # the reply goes on in no other choice's way, so it ended here
    total = sum(masses.values()) + sum(probability for _, probability, _ in shared)
    for text, probability, fits in shared:
        if probability < _NEGLIGIBLE * total:
            continue
        deeper = _masses(ask, beginning + text, {c: rest[c][len(text.casefold()) :] for c in fits})
        whole = sum(deeper.values())
        for choice, mass in deeper.items():
            masses[choice] += probability * mass / whole if whole else 0.0
    return masses
