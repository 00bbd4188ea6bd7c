"""How the judge is asked: prompts with fenced data, rounds of requests, strictly read replies."""

from ragstone.errors import CannotScore
from ragstone.judge import Meter
from ragstone.judging.flow import EmbedRequest, Flow, ask, both, each, embed
from ragstone.judging.prompt import fence, numbered, one_line, tokens
from ragstone.judging.reply import (
    FLAG,
    TEXT,
    Answer,
    BadReply,
    Form,
    bare_answer,
    distinct,
    json_form,
    listing,
    one_of,
    parse,
    parse_json,
    record,
    unfence,
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
    "Form",
    "Meter",
    "ask",
    "bare_answer",
    "both",
    "distinct",
    "each",
    "embed",
    "fence",
    "json_form",
    "listing",
    "numbered",
    "one_line",
    "one_of",
    "parse",
    "parse_json",
    "record",
    "tokens",
    "unfence",
    "whole",
]
