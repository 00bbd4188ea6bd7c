"""Probabilities by asking several times, for judges without log-probabilities."""

from collections import Counter
from collections.abc import Sequence

from ragstone.judging.reply import Answer

VOTE_TEMPERATURE = 0.7  # draws of one prompt are wanted to differ


def voted(answers: Sequence[Answer], choices: Sequence[str]) -> Answer:
    """Return the choice with the most votes, and each choice's share of them.

    With k votes for one of m choices among K, its share is (k + 1/m) / (K + 1): never 0 and never 1, which K votes
    cannot show. Of choices with equally many votes the one that came first is taken.

    Args:
        answers: One draw each, at least one.
        choices: All that could have been answered.

    Example:
        >>> voted([Answer("yes"), Answer("no"), Answer("yes")], ("yes", "no"))
        Answer(choice='yes', probabilities={'yes': 0.625, 'no': 0.375})
    """
    votes = Counter(answer.choice for answer in answers)
    ((choice, _),) = votes.most_common(1)  # in order of arrival where the counts are equal
    shares = {word: (votes[word] + 1.0 / len(choices)) / (len(answers) + 1.0) for word in choices}
    return Answer(choice, shares)
