"""A judge's own words on a score: one sentence, asked for after the verdicts."""

from collections.abc import Mapping, Sequence

from ragstone.judging.prompt import DATA_NOTICE, fence
from ragstone.judging.reply import TEXT, bare_json, parse, record
from ragstone.outcome import Verdict

_TASK = (
    "You see texts and the verdicts that were given on them. Somebody asks why. Answer in one sentence that says what "
    "the texts state, or do not state, that decided the verdicts. Do not judge again, and name no number."
)
FORM = record(why=TEXT)


def prompts(texts: Mapping[str, str], verdicts: Sequence[Verdict], *, texts_first: bool) -> tuple[str, str]:
    """Return the system's and the user's text."""
    judged = "\n".join(f"{each.kind}: {each.text}: {each.verdict}" for each in verdicts)
    data, form = fence({**texts, "verdicts": judged}), bare_json(FORM, {"why": "SENTENCE"})
    if texts_first:
        return DATA_NOTICE, f"{data}\n{_TASK} {form}"
    return f"{_TASK}\n{DATA_NOTICE}", f"{data}\nAnswer why in one sentence. {form}"


def sentence_in(reply: str) -> str:
    """Return the sentence; raises `BadReply`."""
    return " ".join(str(parse(reply, FORM)["why"]).split())
