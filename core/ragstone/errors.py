"""The message of an exception: its type and a few words, without keys."""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from ragstone.outcome import UnscoredReason
from ragstone.plain import printable

LONGEST = 2_000
"""Characters of an error's text that are looked at: more may be scrubbed where the app waits."""
_MOST = 500
_HIDDEN = "[hidden]"
# Patterns are compiled when first used: most runs see no error.
_PREFIXED = r"""(?xs)
      \b(?:sk|pk|rk|xai|gsk|hf|gh[pos]|github_pat|glpat|xox[abps]|nvapi|r8|pplx|p?csk|jina|tvly|lsv2_\w\w)[-_][\w*-]{8,}
    | \bdapi[0-9a-f]{16,} | \bya29\.[\w.-]{8,} | \bA(?:KIA|Iza)[\w-]{12,} | \beyJ[\w-]{8,2000}\.[\w-]{8,}(?:\.[\w-]*)?
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----.*?(?:-----END[A-Z ]{0,40}-----|\Z)"""
_IN_ADDRESS = r"(?<=://)([^\s:/@]{0,200}):(?!\d{1,5}[/?#\s])[^\s\"'<>]{1,300}(?=@)"
_QUOTE = r"""(?:\\{0,8}["'`\u201c\u201d]|%22)"""
_NAME = r"""(?:[\w-]{0,40}(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|pwd|credentials?|signature|[_-]key
    |authorization|cookie)|key|bearer|basic)s?"""
_SCHEME = r"(?:(?:bearer|basic|token)[:\s]{1,4})"
_ASSIGNED = rf"""(?ixs)
    \b(?P<name>{_NAME}) {_QUOTE}?
    (?P<sign> \s{{0,4}} (?:[:=,\uff1a]{{1,2}}|->) \s{{0,4}} | \s{{1,4}} (?:(?:provided|is|you\ sent)[:\s]{{0,4}})? )
    (?:b(?={_QUOTE}))? (?!{_QUOTE}?{_SCHEME}?(?:{_NAME}\b|\[hidden|\.{{3}}(?!\w)|[:=>\uff1a]))
    (?P<quote>{_QUOTE})? {_SCHEME}?
    (?P<value> (?(quote) (?:(?!(?P=quote))(?:\\.|.)){{1,1000}} | [^\s"'`,;&)\]}}\\\u2026]{{1,500}} ) )"""
# The name of a metric or a model.
_SNAKE_CASE = r"(?:[a-z]+_)+[a-z]*\d{1,2}"


class RagstoneError(Exception):
    """Something that whoever uses ragstone can mend; the message says how."""


class GroupError(RagstoneError, ValueError):
    """No row has what `group=` names; the message says what they have."""


class JournalError(RagstoneError):
    """A journal cannot be read or written; the message says why, what is safe, and what to do.

    Attributes:
        report: What `evaluate` had scored by then (a `Report`), if it was its journal.
    """

    report: object = None


class CannotScore(Exception):  # noqa: N818 - it is an outcome on its way, not a programming error
    """Raised inside a flow to end it as `Unscored(reason, detail)`."""

    def __init__(self, reason: UnscoredReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: UnscoredReason = reason
        self.detail = detail


def without_keys(text: str, known: Iterable[str] = ()) -> str:
    """Return the text with "[hidden]" for keys, tokens and passwords.

    Hidden are the known ones, unless they may be short words; those of the usual forms; and what is assigned to a name
    such as "key", "token" or "password" or, after such a word, mixes letters with digits. Sentences about keys stay.

    Args:
        text: An error's, or a message's.
        known: Keys that may be in it in any form.

    Example:
        >>> without_keys("401: Incorrect API key provided: sk-proj-abcdefgh. See https://u:pw1@example.org")
        '401: Incorrect API key provided: [hidden]. See https://u:[hidden]@example.org'
        >>> without_keys("Invalid API key: abcd1234efgh, max tokens: 128000, the key is missing")
        'Invalid API key: [hidden], max tokens: 128000, the key is missing'
    """
    forms = {form for key in known if len(key) > 7 or (len(key) > 3 and not key.isalpha()) for form in _forms(key)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, _HIDDEN)
    text = re.sub(_IN_ADDRESS, rf"\1:{_HIDDEN}", re.sub(_PREFIXED, _HIDDEN, text))
    return re.sub(_ASSIGNED, _hide, text)


def _hide(match: re.Match[str]) -> str:
    value, name, sign = match["value"], match["name"].lower(), match["sign"].strip()
    mixed = len(value) >= 8 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if mixed and not re.fullmatch(_SNAKE_CASE, value):
        hidden = True
    elif name in ("bearer", "basic"):
        hidden = any(map(str.isdigit, value))
    else:
        # A password may be a word.
        named = "pass" in name or "pwd" in name or "_key" in name or sign == "="
        hidden = bool(sign) and (named or bool(match["quote"])) and not value.isdigit()
    return match[0].removesuffix(value) + _HIDDEN if hidden else match[0]


def _forms(key: str) -> set[str]:
    escaped = {key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], repr(key)[1:-1]}
    escaped |= {json.dumps(form)[1:-1] for form in escaped} | {repr(form)[1:-1] for form in escaped}
    urls = {quote(key, safe=""), quote(key), quote_plus(key)}
    return escaped | urls | {re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), url) for url in urls}


def describe(error: BaseException, known: Iterable[str] = (), most: int = _MOST) -> str:
    """Return an exception's type and text on one line, without keys, with at most so many characters of the text.

    Example:
        >>> describe(ConnectionError("https://me:pw1@example.org refused"))
        'ConnectionError: https://me:[hidden]@example.org refused'
    """
    try:
        text = str(error)
        # A key that is cut off does not look like one.
        if len(text) > LONGEST:
            text = text[:LONGEST].rsplit(None, 1)[0]
        text = printable(without_keys(text, known), most)
    except Exception as another:
        # A class of somebody's own may raise anything.
        text = f"(it cannot say what it is: {type(another).__name__})"
    return f"{type(error).__name__}: {text}"
