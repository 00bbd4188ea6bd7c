"""From the odds of yes to an answer."""

from ragstone.judging.reply import Answer


def by_odds(yes: float, no: float) -> Answer:
    """Return the answer whose odds are `yes` to `no`; where both are 0 they say nothing, and it is no.

    Example:
        >>> by_odds(3.0, 1.0)
        Answer(choice='yes', probabilities={'yes': 0.75, 'no': 0.25})
    """
    share = yes / (yes + no) if yes + no else 0.5
    return Answer("yes" if share > 0.5 else "no", {"yes": share, "no": 1.0 - share})
