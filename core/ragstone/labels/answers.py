"""Yes or no by a calibration: the judge's answers with calibrated probabilities, decided at its threshold."""

from collections.abc import Sequence

from ragstone.judging.flow import CannotScore
from ragstone.judging.reply import Answer
from ragstone.labels.calibration import Calibration


def calibrated(
    calibration: Calibration,
    answers: Sequence[Answer],
    cosines: Sequence[float] | None = None,
    contexts: Sequence[int] | None = None,
) -> list[Answer]:
    """Return one sample's answers as the calibration has them; with its method "none" as they are.

    Args:
        calibration: Of items that are answered yes or no.
        answers: One for each item.
        cosines: Of each item with the question, where `calibration.embeds`.
        contexts: In which context each item stands, likewise; None: all in one.

    Raises:
        CannotScore: "undefined" when the judge gave no probability for one.

    Example:
        >>> found = Calibration(metric="demo", version="1", prompts="", judge="fake", item="sentence",
        ...                     weights={"judge": 1.0}, threshold=0.75)
        >>> calibrated(found, [Answer("yes", {"yes": 0.5, "no": 0.5})])
        [Answer(choice='no', probabilities={'yes': 0.5, 'no': 0.5})]
    """
    judged = [answer.probability("yes") for answer in answers]
    known = [p for p in judged if p is not None]
    if len(known) < len(judged):
        raise CannotScore(
            "undefined",
            f"a calibration needs probabilities, and the judge gave none for {len(judged) - len(known)} of "
            f"{len(judged)} items; calibrate by votes (--repeat 5) a judge that has none",
        )
    if calibration.method == "none":
        return list(answers)
    found = calibration.apply(known, cosines, contexts)
    return [
        Answer("yes" if chosen else "no", {"yes": p, "no": 1.0 - p})
        for p, chosen in zip(found, calibration.chosen(found), strict=True)
    ]
