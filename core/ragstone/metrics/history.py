"""Questions that follow a conversation: "And when?" as what it means."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ragstone.judge import LLMRequest
from ragstone.judging import TEXT, Flow, ask, one_line, parse, record
from ragstone.judging.prompt import write_in
from ragstone.judging.reply import bare_json
from ragstone.sample import Sample, Turn

_REPLY = record(topic=TEXT, standalone_question=TEXT)
_CHARACTERS, _HEAD, _TAIL = 3_000, 600, 200  # of the turns together, and of the beginning and the end of a long one


def last_turns(turns: Sequence[Turn]) -> str:
    """Return the last turns of a conversation that fit, a line each; a turn that is cut says [...]."""
    lines: list[str] = []
    for turn in reversed(turns):
        text = turn.content
        if len(text) > _HEAD + _TAIL:
            text = f"{text[:_HEAD]} [...] {text[-_TAIL:]}"
        lines.insert(0, f"{turn.role}: {one_line(text)}")
        if sum(map(len, lines)) > _CHARACTERS:
            return "\n".join(lines[1:])
    return "\n".join(lines)


def standalone(make: Callable[..., LLMRequest], sample: Sample, *, alone: bool) -> Flow[str]:
    """Have the judge say, without the response, what a question asks that follows a conversation.

    The request is the same whatever the metric, so that several in one run share its reply.
    """
    question = sample.user_input or ""
    data = {"conversation": last_turns(sample.history), "follow_up_question": question}
    form = bare_json(_REPLY, {"topic": "TOPIC", "standalone_question": "QUESTION"})
    task = "" if alone else "Rephrase the follow-up question to be a standalone question. "
    fill = {"language": write_in(question, *reversed(sample.texts("history")))}
    request = replace(make("question", data, task + form, _REPLY, fill=fill), task="history.question")
    meant = yield from ask(request, lambda reply: str(parse(reply.text, _REPLY)["standalone_question"]))
    return meant if meant.strip() else question
