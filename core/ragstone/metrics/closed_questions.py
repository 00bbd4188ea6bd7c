"""Closed questions put to a text: shared by SummarizationScore and AlignmentCoverage."""

from collections.abc import Iterable, Sequence
from typing import cast

from ragstone.judge import LLMReply
from ragstone.judging.flow import Flow, ask, each
from ragstone.judging.prompt import filled, numbered, sendable
from ragstone.judging.reply import Answer, BadReply, Reply, exactly, parse_reply
from ragstone.judging.schema import keyed, one_of, record
from ragstone.metrics.base import Metric


class _Answers(Reply):
    answers: dict[str, str]


def ask_closed(
    metric: Metric,
    step: str,
    instructions: str,
    name: str,
    text: str,
    questions: Sequence[str],
    choices: tuple[str, ...],
    *,
    reminder: tuple[str, str] = (
        "Answer the question from the {name} alone.",
        "Answer each of the {n} questions from the {name} alone",
    ),
) -> Flow[list[Answer]]:
    """Put every question to the text: in one call, or in one call each where the judge is asked one by one.

    Args:
        metric: Whose judge is asked.
        step: The step of its prompts.
        instructions: What stands in that step.
        name: What the text is called.
        text: What the questions are put to.
        questions: The questions, at least one.
        choices: The words of an answer.
        reminder: What to do, said again behind the data: with one question, and with `n`.

    Returns:
        One answer per question, in order: exactly as many as were asked.
    """
    words = f"{', '.join(choices[:-1])} or {choices[-1]}"
    if metric.asks_one_by_one:
        return (
            yield from each(
                [
                    metric.ask_choice(
                        metric.choice(
                            step,
                            instructions,
                            {name: text, "question": question},
                            f"{filled(reminder[0], {'name': name})} Reply with one word: {words}.",
                            choices,
                        )
                    )
                    for question in questions
                ]
            )
        )
    ids = [str(i) for i in range(1, len(questions) + 1)]

    def parse(reply: LLMReply) -> list[Answer]:
        answers = parse_reply(reply.text, _Answers).answers
        exactly(answers, ids, "answer")
        for i in ids:
            if answers[i] not in choices:
                raise BadReply(f"the answer on id {i} is not one of {', '.join(choices)}")
        return [Answer(answers[i]) for i in ids]

    request = metric.request(
        step,
        instructions,
        {name: text, "questions": numbered(questions)},
        f"{filled(reminder[1], {'name': name, 'n': str(len(ids))})}: {words}. "
        'Reply with bare JSON: {"answers": {NUMBER: ANSWER}}.',
        record(answers=keyed({i: one_of(choices) for i in ids})),
    )
    return (yield from ask(request, parse))


def check_questions(name: str, questions: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return questions that a user gave as a tuple, None for None.

    Raises:
        TypeError: It is one text, or something in it is no text.
        ValueError: It is empty, or a question is blank.
    """
    if questions is None:
        return None
    if isinstance(questions, str):
        raise TypeError(f"{name}: is one str; pass a list of questions")
    given = tuple(questions)
    if not given:
        raise ValueError(f"{name}: is empty; pass None to have questions made from the source")
    for i, question in enumerate(cast("tuple[object, ...]", given)):
        if not isinstance(question, str):
            raise TypeError(f"{name}[{i}]: is {type(question).__name__}, not text (str)")
        if not question.strip():
            raise ValueError(f"{name}[{i}]: is blank")
    return tuple(map(sendable, given))


def expected_share(probabilities: Sequence[float | None]) -> float | None:
    """Return the mean of the probabilities; None when one is missing or there are none.

    Example:
        >>> expected_share([0.5, 1.0]), expected_share([0.5, None])
        (0.75, None)
    """
    known = [p for p in probabilities if p is not None]
    return sum(known) / len(known) if known and len(known) == len(probabilities) else None
