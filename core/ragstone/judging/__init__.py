"""How the judge is asked: prompts with fenced data, rounds of requests, strictly read replies."""

from ragstone.judging.flow import CannotScore, EmbedRequest, Flow, Meter, ask, both, each, embed
from ragstone.judging.prompt import fence, numbered, one_line, tokens
from ragstone.judging.reply import Answer, bare_answer, parse_choice, unfence
from ragstone.judging.schema import (
    FLAG,
    TEXT,
    BadReply,
    distinct,
    keyed,
    listing,
    one_of,
    parse,
    parse_json,
    record,
    whole,
)

__all__ = [
    "FLAG",
    "TEXT",
    "Answer",
    "BadReply",
    "CannotScore",
    "EmbedRequest",
    "Flow",
    "Meter",
    "ask",
    "bare_answer",
    "both",
    "distinct",
    "each",
    "embed",
    "fence",
    "keyed",
    "listing",
    "numbered",
    "one_line",
    "one_of",
    "parse",
    "parse_choice",
    "parse_json",
    "record",
    "tokens",
    "unfence",
    "whole",
]
