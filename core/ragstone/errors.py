"""What an exception becomes: an outcome or a message, with its type, in few words, and without keys."""

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, SecretStr

from ragstone.judge import Meter
from ragstone.outcome import Outcome, Unscored, UnscoredReason
from ragstone.plain import is_list, is_mapping, printable
from ragstone.sample import Sample

if TYPE_CHECKING:
    from ragstone.metrics.base import Metric

LONGEST = 2_000
"""Characters of an error's text that are looked at: more may be scrubbed where the app waits."""
_HIDDEN = "[hidden]"
_MOST = 500
_LONGEST_WORD = 7  # servers without authentication are given "EMPTY", "none" or "ollama", which are words too
_SHORTEST_KEY = 4
_DEEPEST = 6
_LONG = 16
_HEADER = "a header's value"

# All repetitions that something must follow are bounded: what is scrubbed may be long, and made to take long.
_QUOTE = r"""(?:\\{0,8}["'`\u2018\u2019\u201c\u201d]|%2[27])"""  # with backslashes: JSON or a repr within another
_CLOSE = rf"""(?:{_QUOTE}|[)\]]){{0,2}}"""
_IS = r"""(?:[:=\uff1a\uff1d]{1,3}>?|-{1,2}>|\u2192|%3[AaDd])"""
# Of a text without quotes: a mark ends it, unless it goes on as no other value does.
_BARE = r"""(?:
    \[hidden\]
  | [^\s"'`,;&)\]}\\]
  | \\(?!\\{0,7}["'`])
  | [,;&](?![\s"'`\\]|\Z|[A-Za-z][A-Za-z_\ .-]{0,40}=)
  | \\{0,8}["'`)\]}](?=\w)
)"""
_FORMS = re.compile(
    r"""(?ix)
      \b(?:
          sk|pk|rk|xai|gsk|hf|ghp|gho|ghs|github_pat|glpat|xox[abps]|pat|nvapi|r8|pplx|fw|csk|pcsk|jina|tvly|lsv2_[ps][tk]
      )[-_][A-Za-z0-9_*-]{8,}
    | \bdapi[0-9a-f]{16,}
    | \bya29\.[A-Za-z0-9_-]{8,}
    | \bAKIA[0-9A-Z]{12,}
    | \bAIza[0-9A-Za-z_-]{20,}
    | \beyJ[\w-]{8,2000}\.[\w-]{8,}(?:\.[\w-]*)?
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----.*?(?:-----END[A-Z ]{0,40}-----|\Z)
    """,
    re.DOTALL,
)
# A password may have "/" and "@" in it; "http://host:8080/of@somebody" has none.
_IN_ADDRESS = re.compile(
    r"""(?x)
    (?P<before>
        (?: (?<=http) | (?<=https) )://[^\s:/@]{0,200}:(?!\d{1,5}[/?#])
      | (?<!http)(?<!https)://[^\s:/@]{0,200}:
    )
    (?: [^\s"'<>]{1,300} | [^\s/@]{1,300} ) (?=@)
    """
)
# What follows is hidden, whatever it is.
_ALWAYS = re.compile(
    rf"""(?ix)
    (?P<before>
        (?:
            (?: api[_-]?key | (?:access|account|private|secret|shared|subscription)[_-]?key
              | passwords? | passwd | passphrase | pwd
            ) {_CLOSE} \s{{0,8}} (?: {_IS} | (?<=["'\s]), )
          | [?&](?:[\w-]{{0,40}}[_-])?(?:key|token|auth|code|secret|sig)=
          | incorrect\ api\ key\ provided:
        )
        \s{{0,8}} (?: b(?={_QUOTE}) )?
    )
    (?! {_QUOTE}? (?: \.{{3}} | \u2026 ) (?!\w) )
    (?:
        (?P<quote>{_QUOTE}) (?: (?!(?P=quote)) (?: \\{{1,8}}. | [^\\] ) ){{1,1000}} (?=(?P=quote)|\Z)
      | (?P<open>{_QUOTE}?) (?![:=>\uff1a\uff1d]) {_BARE}{{1,}}
    )
    """,
    re.DOTALL,
)
# What follows is hidden if it is quoted, after "=", or no plain word, as `_is_plain` says.
_MAYBE = re.compile(
    rf"""(?ix)
    (?P<before>
        (?:
            \b(?:bearer|basic) \s{{1,8}} (?!realm=)
          | (?:
                authorization | secrets? | credentials? | signature | sig | (?P<cookie>cookies?)
              | (?:access|api|auth|bearer|id|refresh|security|session)[_-]?token
            ) {_CLOSE} \s{{0,8}} (?P<is> {_IS} | (?<=["'\s]), ) \s{{0,8}}
        )
        (?: b?(?P<quote>{_QUOTE}) )?
        (?: (?:bearer|basic|token|digest|negotiate|api-?key) [\s:]{{1,8}} {_QUOTE}? )?
    )
    (?P<secret> (?![:=>\uff1a\uff1d]) {_BARE}{{1,}} )
    (?(cookie) (?: ; \s{{0,2}} [^\s"';]{{1,500}} ){{0,50}} )
    """
)
# A word for a key, a few words and marks between, and what may be one. `_is_token` decides.
_NAMED = re.compile(
    rf"""(?x)
    (?P<before>
        (?:
            (?<![A-Za-z]) (?i:key|token|secret|authorization|credential|password) | (?<=[a-z])(?:Key|Token|Secret)
          | (?i:apikey|accesskey|secretkey)
        )
        (?i:s?) (?![A-Za-z0-9])
        {_CLOSE}
        (?:
            (?: \s{{1,4}} [A-Za-z']{{1,12}} ){{0,6}} \s{{0,4}} {_IS}
          | (?: \s{{1,4}} (?i:provided|supplied|given|used|value|header|is|was|with|starting|ending) ){{0,3}}
            \s{{0,4}} ,?
        )
        \s{{0,4}} (?: b?{_QUOTE} | [(<\[] ){{0,2}}
        (?: (?i:bearer|basic|token) \s{{1,4}} )?
    )
    (?P<secret>[A-Za-z0-9_+/=~.*%-]{{8,200}})
    """
)
_REST = re.compile(r"[A-Za-z0-9_+/=~.*%-]*")
_PLAIN = re.compile(r"[A-Za-z]?(?:[a-z]+|[A-Z]+)(?:['_-](?:[a-z]+|[A-Z]+)){0,3}[.:!?>]{0,3}")
_RUN = re.compile(r"[A-Za-z0-9]+")
_TURN = re.compile(r"[a-z][A-Z]")
_KINDS = ("[a-z]", "[A-Z]", "[0-9]")
_ENCODED = re.compile(r"%[0-9A-F]{2}")
_NAME_OF_A_KEY = re.compile(
    r"api_?key|(?:access|account|auth|bearer|secret|session)_?(?:key|token)|password|^token$|^authorization$",
    re.IGNORECASE,
)
# A header's value that says what is sent or wanted: "application/json", "no-cache", "text/plain; charset=utf-8".
_PLAIN_HEADER = re.compile(
    r"""(?x)
    (?:[A-Za-z][a-z]{0,11}|[A-Z]{1,12}) (?: [-/.,+\ ]{1,2} (?:[A-Za-z][a-z]{0,11}|[A-Z]{1,12}) ){0,4}
    (?: ;\ ?charset=[\w-]{1,12} )?
    """
)
_SCHEMES = re.compile(r"(?:bearer|basic|token|digest|negotiate|api-?key) +", re.IGNORECASE)


class CannotScore(Exception):  # noqa: N818 - it is an outcome on its way, not a programming error
    """Raised inside a flow to end it as `Unscored(reason, detail)`."""

    def __init__(self, reason: UnscoredReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: UnscoredReason = reason
        self.detail = detail


def without_keys(text: str, known: Iterable[str] = ()) -> str:
    """Return the text with "[hidden]" for keys, tokens and passwords.

    Hidden are the known ones, unless they may be short words; those of the usual forms; and, after a word such as
    "key" or "token", what looks like one: letters mixed with digits, or very long. Sentences about keys stay.

    Args:
        text: An error's, or a message's.
        known: Keys that may be in it in any form.

    Example:
        >>> without_keys("401: Incorrect API key provided: sk-proj-abcdefgh. See https://u:pw1@example.org")
        '401: Incorrect API key provided: [hidden] See https://u:[hidden]@example.org'
        >>> without_keys("Invalid API key: abcd1234efgh, max tokens: 128000, the key is missing")
        'Invalid API key: [hidden], max tokens: 128000, the key is missing'
    """
    forms = {form for key in known if _may_be_a_key(key) for form in _forms(key)}
    for form in sorted(forms, key=len, reverse=True):  # one may begin with another
        text = text.replace(form, _HIDDEN)
    text = _FORMS.sub(_HIDDEN, text)
    text = _IN_ADDRESS.sub(lambda match: f"{match['before']}{_HIDDEN}", text)
    text = _ALWAYS.sub(lambda match: f"{match['before']}{match['quote'] or match['open'] or ''}{_HIDDEN}", text)
    text = _hide(_MAYBE, lambda match: _is_assigned(match) or not _is_plain(match["secret"]), text)
    return _hide(_NAMED, lambda match: _is_token(match["secret"]), text)


def _may_be_a_key(text: str) -> bool:
    return len(text) > _LONGEST_WORD or (len(text) >= _SHORTEST_KEY and not text.isalpha())


def _forms(key: str) -> set[str]:
    """Return how a key may be written: as it is, in an address, in JSON or a repr, and in one of these in another."""
    escaped = {key}
    for _ in range(2):
        for form in tuple(escaped):
            doubled = form.replace("\\", "\\\\")
            escaped |= {json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1], repr(form)[1:-1]}
            escaped |= {doubled, doubled.replace("'", "\\'")}
    encoded = {quote(key, safe="", errors="replace"), quote(key, errors="replace"), quote_plus(key, errors="replace")}
    return escaped | encoded | {_ENCODED.sub(lambda match: match[0].lower(), form) for form in encoded}


def _hide(pattern: re.Pattern[str], is_secret: Callable[[re.Match[str]], bool], text: str) -> str:
    """Hide the secrets of a pattern. What is none is looked at again, as it may be a word before one."""
    parts: list[str] = []
    start = looked = 0
    while match := pattern.search(text, looked):
        looked = match.start("secret")
        if is_secret(match):
            parts += [text[start:looked], _HIDDEN]
            end = match.end()
            if pattern is _NAMED and (rest := _REST.match(text, end)):
                end = rest.end()
            start = looked = end
    return "".join([*parts, text[start:]])


def _is_assigned(match: re.Match[str]) -> bool:
    return bool(match["is"] and (match["quote"] or "=" in match["is"]))


def _is_plain(text: str) -> bool:
    """Whether it is a word: letters in one case but for the first, and so few that it is no key."""
    return len(text) < _LONG and _PLAIN.fullmatch(text) is not None


def _is_token(text: str) -> bool:
    """Whether it is no word, name or number that a person would write after "key" or "token"."""
    runs = _RUN.findall(text)
    if any(len(run) >= 8 and not run.isalpha() and not run.isdigit() for run in runs):
        return True
    if ("***" in text and runs) or (len(text) >= _LONG and all(re.search(kind, text) for kind in _KINDS)):
        return True
    longest = max((len(run) for run in runs), default=0)
    mixed = any(character.isdigit() for character in text) and any(character.isalpha() for character in text)
    # A UUID; a number too long for a count; letters too many, or too mixed, for a word.
    return (mixed and text.count("-") == 4 and len(text) >= 32) or any(
        (run.isdigit() and len(run) >= 16) or len(run) >= 24 or (len(run) >= 16 and len(_TURN.findall(run)) >= 3)
        for run in runs
        if len(run) == longest
    )


def describe(error: BaseException, known: Iterable[str] = (), most: int = _MOST) -> str:
    """Return an exception's type and text on one line, without keys, with at most so many characters of the text.

    Example:
        >>> describe(ConnectionError("https://me:pw1@example.org refused"))
        'ConnectionError: https://me:[hidden]@example.org refused'
    """
    try:
        text = str(error)
        if len(text) > LONGEST:  # a key that is cut off half-way is not known as one
            text = text[:LONGEST].rsplit(None, 1)[0]
        text = printable(without_keys(text, known), most)
    except Exception as another:  # a class of somebody's own
        text = f"(it cannot say what it is: {type(another).__name__})"
    return f"{type(error).__name__}: {text}"


def secrets_in(model: object) -> tuple[str, ...]:
    """Return the keys that a pydantic model object holds, in itself or in what it wraps.

    Those are its `SecretStr`s, the texts of fields and mappings named like a key, such as `api_key`, and the values
    of headers, such as `default_headers`, that are no plain words.
    """
    secrets: dict[str, None] = {}
    seen: set[int] = set()
    level = [("", model)]
    for _ in range(_DEEPEST):
        inside: list[tuple[str, object]] = []
        for name, value in level:
            if isinstance(value, SecretStr):
                secrets[value.get_secret_value()] = None
            elif isinstance(value, str) and _NAME_OF_A_KEY.search(name):
                secrets[value.rpartition(" ")[2]] = None  # of "Bearer KEY", the key
            elif isinstance(value, str) and name == _HEADER:
                if len(value) > _LONGEST_WORD and not _PLAIN_HEADER.fullmatch(value):
                    secrets[_SCHEMES.sub("", value, count=1)] = None
            elif id(value) not in seen:
                seen.add(id(value))
                inside.extend(_parts(name, value))
        level = inside
    return tuple(key for key in secrets if key)


def _parts(name: str, value: object) -> Iterable[tuple[str, object]]:
    if isinstance(value, BaseModel):
        return [*vars(value).items(), *(value.__pydantic_extra__ or {}).items()]
    if is_mapping(value):
        items = [(str(key), part) for key, part in value.items()]
        if name.lower().endswith("headers"):
            return [(key if _NAME_OF_A_KEY.search(key) else _HEADER, part) for key, part in items]
        return items
    return [(name, part) for part in value] if is_list(value) else ()


def secrets_of(*adapters: object) -> tuple[str, ...]:
    """Return the keys of judges and embedders that have an attribute `secrets`."""
    secrets: list[str] = []
    for adapter in adapters:
        with suppress(Exception):  # of a class of somebody's own
            value: object = getattr(adapter, "secrets", ())
            secrets += [key for key in value if isinstance(key, str)] if is_list(value) else ()
    return tuple(secrets)


def unscored(metric: "Metric", error: Exception, meter: Meter) -> Unscored:
    """Return the outcome of a sample whose scoring raised, with what had been spent, and without keys.

    A `TimeoutError` is "timeout", a `CannotScore` keeps its own reason, every other exception is "judge_error".
    """
    known = secrets_of(metric.judge, metric.judge_embedder)
    reason: UnscoredReason = "timeout" if isinstance(error, TimeoutError) else "judge_error"
    if isinstance(error, CannotScore):
        reason, detail = error.reason, without_keys(error.detail, known)
    else:
        detail = describe(error, known)
    return Unscored(metric=metric.name, reason=reason, detail=detail, usage=meter.usage(), version=metric.version)


def score_safely(metric: "Metric", sample: Sample, meter: Meter | None = None) -> Outcome:
    """Score a sample, blocking; an exception becomes an `Unscored`, as `unscored` says."""
    meter = meter or Meter()
    try:
        return metric.score(sample, meter=meter)
    except Exception as error:
        return unscored(metric, error, meter)


async def ascore_safely(metric: "Metric", sample: Sample) -> Outcome:
    """Score a sample on the running event loop; otherwise as `score_safely`."""
    meter = Meter()
    try:
        return await metric.ascore(sample, meter=meter)
    except Exception as error:
        return unscored(metric, error, meter)
