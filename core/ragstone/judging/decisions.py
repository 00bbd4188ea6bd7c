"""Questions for a decision model: those of a round on the same texts share requests."""

import math
from collections.abc import Sequence
from typing import Any

from ragstone.errors import CannotScore
from ragstone.judge import DecisionReply, DecisionRequest
from ragstone.judging.flow import Flow, Request, Round, T
from ragstone.judging.prompt import one_line, sendable
from ragstone.judging.reply import Answer, BadReply, as_shares

_ROUNDING = 0.02  # by which probabilities may miss a sum of 1


def in_few_requests(flow: Flow[T], most: int) -> Flow[T]:
    """Run a flow whose decision requests hold one question each, which gets its `Answer`.

    The questions of a round on the same texts go out in one request, or in several of at most `most` questions.

    Raises:
        CannotScore: "judge_unparseable" when the model refused a question, or an answer is missing or cannot be used.
    """
    replies: tuple[object, ...] | None = None
    try:
        while True:
            round_ = flow.send(replies)
            groups = _same_texts(round_, most)
            sent = [_joined([round_[i] for i in group]) for group in groups]
            answers: dict[int, object] = {}
            for group, request, reply in zip(groups, sent, (yield tuple(sent)), strict=True):
                decided = _answers(request, reply) if isinstance(request, DecisionRequest) else [reply]
                answers.update(zip(group, decided, strict=True))
            replies = tuple([answers[i] for i in range(len(round_))])
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


def _same_texts(round_: Round, most: int) -> list[list[int]]:
    """Return the numbers of the requests that go out as one."""
    groups: dict[object, list[int]] = {}
    for i, request in enumerate(round_):
        texts = tuple(sorted(request.texts.items())) if isinstance(request, DecisionRequest) else i
        groups.setdefault(texts, []).append(i)
    return [group[at : at + most] for group in groups.values() for at in range(0, len(group), most)]


def _joined(requests: Sequence[Request]) -> Request:
    asked = [request for request in requests if isinstance(request, DecisionRequest)]
    if not asked:
        return requests[0]
    task = "+".join(dict.fromkeys(request.task for request in asked))
    questions = [question for request in asked for question in request.questions.values()]
    return DecisionRequest(task, asked[0].texts, {str(n): question for n, question in enumerate(questions, 1)})


def _answers(request: DecisionRequest, reply: DecisionReply) -> list[Answer]:
    given = reply.probabilities
    try:
        if unknown := given.keys() - request.questions.keys():
            raise BadReply(f"the decision model answered a question {min(unknown)!r} that was not asked")
        return [_answer(name, given, question.choices) for name, question in request.questions.items()]
    except BadReply as bad:
        said = one_line(sendable(str(bad)))[:300]
        raise CannotScore("judge_unparseable", f"{request.task}: {said}") from None


def _answer(name: str, given: Any, choices: tuple[str, ...]) -> Answer:  # noqa: ANN401 - of an adapter
    if name not in given:
        raise BadReply(f"the decision model did not answer question {name}")
    if given[name] is None:
        raise BadReply(f"the decision model refused question {name}")
    shares = as_shares(given[name], choices)
    if not math.isclose(sum(map(float, given[name].values())), 1, abs_tol=_ROUNDING):
        raise BadReply(f"the probabilities of question {name} do not add up to 1")
    # of equally probable choices the last: a tie is no yes
    return Answer(max(reversed(choices), key=shares.__getitem__), shares)
