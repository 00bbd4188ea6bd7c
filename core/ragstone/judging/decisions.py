"""The adapter of decision models: a metric asks one question at a time, and those on the same texts go together."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ragstone.errors import CannotScore
from ragstone.judge import DecisionReply, DecisionRequest, Question
from ragstone.judging.flow import Flow, Request, Round, T
from ragstone.judging.prompt import fence, one_line, sendable
from ragstone.judging.reply import Answer, BadReply, as_shares

# The sum of a question's probabilities may miss 1 by this much.
_ROUNDING = 0.02


def one_question(
    task: str, texts: Mapping[str, str], instruction: str, item: Mapping[str, str], choices: tuple[str, ...]
) -> DecisionRequest:
    """A request of one question, which has the item fenced behind its instruction, and bare beside it."""
    question = "\n".join(filter(None, (instruction, fence(item)))).strip()
    return DecisionRequest(task, texts, {"1": Question(question, choices, sendable("\n".join(item.values())))})


def ask_question(request: DecisionRequest) -> Flow[Answer]:
    """Ask a request's one question, in a flow that `in_few_requests` runs."""
    (answer,) = yield (request,)
    return cast("Answer", answer)


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
            names = _numbered_tasks(round_)
            answers: dict[int, object] = {}
            for group, request, reply in zip(groups, sent, (yield tuple(sent)), strict=True):
                asked = [names[i] for i in group]
                decided = _read_answers(request, asked, reply) if isinstance(request, DecisionRequest) else [reply]
                answers.update(zip(group, decided, strict=True))
            replies = tuple([answers[i] for i in range(len(round_))])
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


def _same_texts(round_: Round, most: int) -> list[list[int]]:
    """The numbers of the requests that go out as one."""
    groups: dict[object, list[int]] = {}
    for i, request in enumerate(round_):
        texts = tuple(sorted(request.texts.items())) if isinstance(request, DecisionRequest) else i
        groups.setdefault(texts, []).append(i)
    return [group[at : at + most] for group in groups.values() for at in range(0, len(group), most)]


def _numbered_tasks(round_: Round) -> list[tuple[str, int]]:
    """Each request's task, and which of the round's questions of this task it is: the number of its item."""
    asked: Counter[str] = Counter()
    numbers: dict[int, int] = {}
    names: list[tuple[str, int]] = []
    for request in round_:
        task, question = (request.task, request.questions["1"]) if isinstance(request, DecisionRequest) else ("", None)
        # The same question is put to each window of a text.
        if question is None or id(question) not in numbers:
            asked[task] += 1
            numbers[id(question)] = asked[task]
        names.append((task, numbers[id(question)]))
    return names


def _joined(requests: Sequence[Request]) -> Request:
    asked = [request for request in requests if isinstance(request, DecisionRequest)]
    if not asked:
        return requests[0]
    task = "+".join(dict.fromkeys(request.task for request in asked))
    questions = [question for request in asked for question in request.questions.values()]
    return DecisionRequest(task, asked[0].texts, {str(n): question for n, question in enumerate(questions, 1)})


def _read_answers(request: DecisionRequest, names: Sequence[tuple[str, int]], reply: DecisionReply) -> list[Answer]:
    given, task, answers = reply.probabilities, request.task, list[Answer]()
    try:
        # An adapter may give a question a name of any type.
        if unknown := sorted(map(repr, given.keys() - request.questions.keys())):
            raise BadReply(f"the decision model answered a question {unknown[0]} that was not asked")
        for own, (name, question) in zip(names, request.questions.items(), strict=True):
            task, number = own
            answers.append(_read_answer(name, number, given, question.choices))
    except BadReply as bad:
        said = one_line(sendable(str(bad)))[:300]
        raise CannotScore("judge_unparseable", f"{task}: {said}") from None
    return answers


def _read_answer(name: str, number: int, given: Any, choices: tuple[str, ...]) -> Answer:  # noqa: ANN401 - of an adapter
    if name not in given:
        raise BadReply(f"the decision model did not answer question {number}")
    if given[name] is None:
        raise BadReply(f"the decision model refused question {number}")
    shares = as_shares(given[name], choices, f"the decision model's probabilities of question {number}: ")
    if not math.isclose(sum(map(float, given[name].values())), 1, abs_tol=_ROUNDING):
        raise BadReply(f"the probabilities of question {number} do not add up to 1")
    # Of equally probable choices the last counts: a tie is no yes.
    return Answer(max(reversed(choices), key=shares.__getitem__), shares)
