"""How the judge is asked: prompts with fenced data, rounds of requests, strictly read replies."""

from ragstone.judging.flow import CannotScore, EmbedRequest, Flow, Meter, ask, both, each, embed
from ragstone.judging.prompt import fence, numbered, one_line, tokens
from ragstone.judging.reply import (
    Answer,
    BadReply,
    Reply,
    bare_answer,
    exactly,
    parse_choice,
    parse_json,
    parse_reply,
    unfence,
)

__all__ = [
    "Answer",
    "BadReply",
    "CannotScore",
    "EmbedRequest",
    "Flow",
    "Meter",
    "Reply",
    "ask",
    "bare_answer",
    "both",
    "each",
    "embed",
    "exactly",
    "fence",
    "numbered",
    "one_line",
    "parse_choice",
    "parse_json",
    "parse_reply",
    "tokens",
    "unfence",
]
