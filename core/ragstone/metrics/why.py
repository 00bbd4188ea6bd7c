"""A judge's own words on a score: one sentence, asked for after the verdicts."""

from collections.abc import Mapping, Sequence

from ragstone.judge import LLMReply, LLMRequest, WriterRequest
from ragstone.judging.flow import Flow, ask
from ragstone.judging.prompt import DATA_NOTICE, fence, tokens
from ragstone.judging.reply import TEXT, json_form, parse, record
from ragstone.metrics.asking import Asker
from ragstone.outcome import Verdict

_TASK = (
    "You see texts and the verdicts that were given on them. Somebody asks why. Answer in one sentence that says what "
    "the texts state, or do not state, that decided the verdicts. Do not judge again, and name no number."
)
_FORM = json_form(record(why=TEXT), why="SENTENCE")


def ask_why(asker: Asker, texts: Mapping[str, str], verdicts: Sequence[Verdict]) -> Flow[str]:
    """Ask for the sentence; "" where nobody writes, or the prompt would be too long."""
    judged = "\n".join(f"{each.kind}: {each.text}: {each.verdict}" for each in verdicts)
    data = fence({**texts, "verdicts": judged})
    if asker.writes_alone:
        system, user = DATA_NOTICE, f"{data}\n{_TASK} {_FORM.asked}"
    else:
        system, user = f"{_TASK}\n{DATA_NOTICE}", f"{data}\nAnswer why in one sentence. {_FORM.asked}"
    if not asker.has_writer or tokens(system, user) > asker.input_limit:
        return ""
    kind = LLMRequest if asker.writer is None else WriterRequest
    return (yield from ask(kind(f"{asker.name}.why", system, user, _FORM.schema), _sentence))


def _sentence(reply: LLMReply) -> str:
    return " ".join(str(parse(reply.text, _FORM.schema)["why"]).split())
