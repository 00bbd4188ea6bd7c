"""Questions that follow a conversation: "And when?" as what it means."""

from collections.abc import Sequence
from operator import itemgetter

from ragstone.judging import TEXT, Flow, json_form, one_line, record
from ragstone.judging.prompt import write_in
from ragstone.metrics.asking import Asker, Details
from ragstone.plain import is_visible
from ragstone.sample import Sample, Turn

# Characters: of the turns together, and of the beginning and the end of a long one.
_CHARACTERS, _HEAD, _TAIL = 3_000, 600, 200
_STANDALONE = json_form(record(topic=TEXT, standalone_question=TEXT), topic="TOPIC", standalone_question="QUESTION")


def standalone(asker: Asker, sample: Sample) -> Flow[str]:
    """Ask what a follow-up question means by itself.

    The request is the same whatever the metric, without the response: several metrics of one run share its reply.
    """
    asked = sample.user_input or ""
    language = write_in(asked, *reversed(sample.texts("history")))
    meant: str = yield from asker.ask_json(
        "question",
        {"conversation": last_turns(sample.history), "follow_up_question": asked},
        "Rephrase the follow-up question to be a standalone question.",
        _STANDALONE,
        itemgetter("standalone_question"),
        Details(fill={"language": language}, writes=True, whose="history"),
    )
    return meant if is_visible(meant) else asked


def last_turns(turns: Sequence[Turn]) -> str:
    """The last turns of a conversation that fit, a line each; a turn that is cut says [...]."""
    lines: list[str] = []
    for turn in reversed(turns):
        text = turn.content
        if len(text) > _HEAD + _TAIL:
            text = f"{text[:_HEAD]} [...] {text[-_TAIL:]}"
        lines.insert(0, f"{turn.role}: {one_line(text)}")
        if sum(map(len, lines)) > _CHARACTERS:
            return "\n".join(lines[1:])
    return "\n".join(lines)
