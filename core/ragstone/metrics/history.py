"""Questions that follow a conversation: "And when?" as what it means."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragstone.judge import LLMReply
from ragstone.judging.flow import Flow, ask
from ragstone.judging.prompt import one_line, write_in
from ragstone.judging.reply import TEXT, BadReply, bare_json, parse, record
from ragstone.sample import Sample, Turn

if TYPE_CHECKING:
    from ragstone.metrics.base import Metric

QUESTION = (
    "Given the conversation and the follow-up question, say in a few words what the follow-up question is about, then "
    "rephrase it to be a standalone question that names this, in its original language.{language}"
)
_TASK = "Rephrase the follow-up question to be a standalone question."
_REPLY = record(topic=TEXT, standalone_question=TEXT)
_CHARACTERS = 3_000  # of a conversation that a judge is shown
_HEAD, _TAIL = 600, 200  # characters of a longer turn
_CUT = " [...] "


def last_turns(turns: Sequence[Turn]) -> str:
    """Return the last turns of a conversation as a line each, 3,000 characters together; a cut one says [...].

    Example:
        >>> print(last_turns([Turn(role="user", content="Who wrote Emma?"), Turn(role="ai", content="Jane Austen.")]))
        user: Who wrote Emma?
        assistant: Jane Austen.
    """
    lines: list[str] = []
    room = _CHARACTERS
    for turn in reversed(turns):
        text = turn.content
        if len(text) > _HEAD + len(_CUT) + _TAIL:
            text = f"{text[:_HEAD]}{_CUT}{text[-_TAIL:]}"
        line = f"{turn.role}: {one_line(text)}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def standalone(metric: "Metric", sample: Sample) -> Flow[Sample]:
    """Have the judge say what a question asks that follows a conversation; return the sample with that question.

    The request is the same whatever the metric, so that several in one run share its reply. The response is not in it.
    """
    question = sample.user_input or ""
    language = write_in(question, "\n".join(turn.content for turn in sample.history if turn.role == "user"))
    form = bare_json(_REPLY, {"topic": "TOPIC", "standalone_question": "QUESTION"})
    request = metric.request(
        "question",
        {"conversation": last_turns(sample.history), "follow_up_question": question},
        form if metric.asks_one_by_one else f"{_TASK} {form}",
        _REPLY,
        fill={"language": language},
    )

    def read(reply: LLMReply) -> str:
        text: str = parse(reply.text, _REPLY)["standalone_question"]
        if not text.strip():
            raise BadReply("the question is blank")
        return text

    meant = yield from ask(replace(request, task="history.question"), read)
    return sample.model_copy(update={"user_input": meant})
