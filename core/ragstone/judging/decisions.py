"""Questions over shared texts, put to a decision model: one request a text, cut at what the model takes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragstone.errors import CannotScore
from ragstone.judge import DecisionReply, DecisionRequest, Question
from ragstone.judging.flow import Flow, Round, T
from ragstone.judging.prompt import one_line, sendable
from ragstone.judging.reply import Answer, BadReply, as_shares

_ROUNDING = 0.02  # by which probabilities may miss a sum of 1


def decide(request: DecisionRequest) -> Flow[list[Answer]]:
    """Put questions to a decision model and return an answer to each, in order.

    Raises:
        CannotScore: "judge_unparseable" when it refused a question, or an answer is missing or cannot be used.
    """
    if not request.questions:
        return []
    (reply,) = yield (request,)
    try:
        return _read(reply, request.questions)
    except BadReply as bad:
        said = one_line(sendable(str(bad)))[:300]
        raise CannotScore("judge_unparseable", f"{request.task}: {said}") from None


def decide_one(request: DecisionRequest) -> Flow[Answer]:
    """Put the one question of a request to a decision model."""
    (answer,) = yield from decide(request)
    return answer


def _read(reply: DecisionReply, questions: Mapping[str, Question]) -> list[Answer]:
    given = reply.probabilities
    if unknown := given.keys() - questions.keys():
        raise BadReply(f"the decision model answered a question {min(unknown)!r} that was not asked")
    answers: list[Answer] = []
    for name, question in questions.items():
        if name not in given:
            raise BadReply(f"the decision model did not answer question {name}")
        probabilities = given[name]
        if probabilities is None:
            raise BadReply(f"the decision model refused question {name}")
        shares = as_shares(probabilities, question.choices)
        if not math.isclose(sum(map(float, probabilities.values())), 1, abs_tol=_ROUNDING):
            raise BadReply(f"the probabilities of question {name} do not add up to 1")
        most = max(shares.values())
        # of equally probable choices the last: a tie is no yes
        choice = [word for word in question.choices if shares[word] == most][-1]
        answers.append(Answer(choice, shares))
    return answers


def in_few_requests(flow: Flow[T], most: int) -> Flow[T]:
    """Run a flow so that a round's questions on the same texts share requests, of at most `most` questions each."""
    replies: tuple[object, ...] | None = None
    try:
        while True:
            round_ = next(flow) if replies is None else flow.send(replies)
            others = [each for each in round_ if not isinstance(each, DecisionRequest)]
            packed = list(_packed(round_, most))
            answered = yield (*others, *(request for request, _ in packed))
            decided = _decided(packed, answered[len(others) :])
            rest = iter(answered)
            replies = tuple(
                DecisionReply(decided[i]) if isinstance(each, DecisionRequest) else next(rest)
                for i, each in enumerate(round_)
            )
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


Place = tuple[int, str]
"""Of a question: the number of its request in the round, and its id there."""


def _packed(round_: Round, most: int) -> Iterator[tuple[DecisionRequest, list[Place]]]:
    """Yield the requests that go out, and where each of their questions came from."""
    asked = {i: each for i, each in enumerate(round_) if isinstance(each, DecisionRequest)}
    by_texts: dict[tuple[tuple[str, str], ...], list[Place]] = {}
    for i, request in asked.items():
        places = by_texts.setdefault(tuple(sorted(request.texts.items())), [])
        places.extend((i, name) for name in request.questions)
    for places in by_texts.values():
        for start in range(0, len(places), most):
            chunk = places[start : start + most]
            questions = {str(n): asked[i].questions[name] for n, (i, name) in enumerate(chunk, 1)}
            task = "+".join(dict.fromkeys(asked[i].task for i, _ in chunk))
            yield DecisionRequest(task, asked[chunk[0][0]].texts, questions), chunk


def _decided(
    packed: Sequence[tuple[DecisionRequest, list[Place]]], replies: Sequence[Any]
) -> Mapping[int, Mapping[str, Mapping[str, float] | None]]:
    """Return the answers by the number of the request in the round; an answer to no question goes to the first."""
    decided: dict[int, dict[str, Mapping[str, float] | None]] = {}
    for (_, places), reply in zip(packed, replies, strict=True):
        names = {str(n): place for n, place in enumerate(places, 1)}
        for name, probabilities in reply.probabilities.items():
            i, own = names.get(name, (places[0][0], f"{name} (unknown)"))
            decided.setdefault(i, {})[own] = probabilities
        for i, _ in places:
            decided.setdefault(i, {})
    return decided
