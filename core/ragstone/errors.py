"""What an exception becomes: an outcome or a message, with its type, in few words, and without keys."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from pydantic import BaseModel, SecretStr

from ragstone.asking.flow import CannotScore, Meter
from ragstone.outcome import Outcome, Unscored
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

# All repetitions are bounded: what is scrubbed may be long, and made to take long.
_SECRETS = re.compile(
    r"""(?ix)
    (?P<before>
        authorization ["']? \s{0,8} [:=,] \s{0,8} (?:b?["'])?
        (?: (?:bearer|basic|token|digest|negotiate|api-?key) \s{1,8} )?
      | \b(?:bearer|basic) \s{1,8}
      | (?:
            api[_-]?key | (?:access|account|private|secret|shared)[_-]?key | secret | passwd | password | passphrase
          | pwd | credentials? | (?:access|auth|id|refresh|session)[_-]?token | signature | sig | cookie
        ) ["']? \s{0,8} (?: [:=] | (?<=["'\s]), ) \s{0,8} (?:b?["'])?
      | [?&](?:key|token|auth|code)=
      | incorrect\ api\ key\ provided: \s{0,8}
    )
    (?P<secret>[^\s"',;&)\]}]{3,})
    | (?P<user>://[^\s:/@]{0,200}:) [^\s/@]{1,500} (?=@)
    | \b(?:
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
# A word for a key, a few words and marks between, and what may be one. `_is_token` decides.
_NAMED = re.compile(
    r"""(?x)
    (?P<before>
        (?: (?<![A-Za-z]) (?i:key|token|secret|authorization|credential|password) | (?<=[a-z])(?:Key|Token|Secret) )
        s? (?![A-Za-z0-9])
        ["'`\u2019\u201d)]{0,2}
        (?: \s{1,4} (?i:provided|supplied|given|used|value|header|is|was|with|starting|ending) ){0,3}
        \s{0,4} [:=,]? \s{0,4} b?["'`\u2018\u201c(<\[]{0,2}
        (?: (?i:bearer|basic|token) \s{1,4} )?
    )
    (?P<token>[A-Za-z0-9_+/=~.*-]{8,})
    """
)
_RUN = re.compile(r"[A-Za-z0-9]+")
_TURN = re.compile(r"[a-z][A-Z]")
_NAME_OF_A_KEY = re.compile(
    r"api_?key|(?:access|account|auth|bearer|secret|session)_?(?:key|token)|password|^token$|^authorization$",
    re.IGNORECASE,
)


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
    for key in known:
        if len(key) > _LONGEST_WORD or (len(key) >= _SHORTEST_KEY and not key.isalpha()):
            text = text.replace(key, _HIDDEN).replace(quote(key, safe=""), _HIDDEN)
    text = _SECRETS.sub(lambda match: f"{match['before'] or match['user'] or ''}{_HIDDEN}", text)
    return _NAMED.sub(lambda match: f"{match['before']}{_HIDDEN}" if _is_token(match["token"]) else match[0], text)


def _is_token(text: str) -> bool:
    """Whether it is no word, name or number that a person would write after "key" or "token"."""
    runs = _RUN.findall(text)
    if any(len(run) >= 8 and not run.isalpha() and not run.isdigit() for run in runs):
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
    """Return an exception's type and text, without keys, with at most so many characters of the text.

    Example:
        >>> describe(ConnectionError("https://me:pw1@example.org refused"))
        'ConnectionError: https://me:[hidden]@example.org refused'
    """
    try:
        text = str(error)
        if len(text) > LONGEST:  # a key that is cut off half-way is not known as one
            text = text[:LONGEST].rsplit(None, 1)[0]
        text = without_keys(text, known)[:most]
    except Exception as another:  # a class of somebody's own
        text = f"(it cannot say what it is: {type(another).__name__})"
    return f"{type(error).__name__}: {text}"


def secrets_in(model: object) -> tuple[str, ...]:
    """Return the keys that a pydantic model object holds, in itself or in what it wraps.

    Those are its `SecretStr`s, and the texts of fields and mappings named like a key, such as `api_key`.

    Example:
        >>> class Client(BaseModel):
        ...     api_key: SecretStr
        >>> secrets_in(Client(api_key="abcd1234"))
        ('abcd1234',)
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
            elif isinstance(value, (BaseModel, Mapping, list, tuple)) and id(cast("object", value)) not in seen:
                seen.add(id(cast("object", value)))
                inside.extend(_parts(name, cast("object", value)))
        level = inside
    return tuple(key for key in secrets if key)


def _parts(name: str, value: object) -> Iterable[tuple[str, object]]:
    if isinstance(value, BaseModel):
        return [*vars(value).items(), *(value.__pydantic_extra__ or {}).items()]
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in cast("Mapping[object, object]", value).items()]
    return [(name, part) for part in cast("Iterable[object]", value)]


def secrets_of(*adapters: object) -> tuple[str, ...]:
    """Return the keys of judges and embedders that have an attribute `secrets`."""
    secrets: list[str] = []
    for adapter in adapters:
        with suppress(Exception):  # of a class of somebody's own
            value: object = getattr(adapter, "secrets", ())
            if isinstance(value, (tuple, list)):
                secrets += [key for key in cast("Iterable[object]", value) if isinstance(key, str)]
    return tuple(secrets)


def unscored(metric: "Metric", error: Exception, meter: Meter) -> Unscored:
    """Return what an exception makes of an evaluation, with what had been spent, and without keys.

    A `TimeoutError` is "timeout", a `CannotScore` of the meter's says itself, every other exception is "judge_error".
    """
    known = secrets_of(metric.llm, metric._embedder())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if isinstance(error, CannotScore):
        reason, detail = error.reason, without_keys(error.detail, known)
    else:
        reason = "timeout" if isinstance(error, TimeoutError) else "judge_error"
        detail = describe(error, known)
    return Unscored(
        metric=metric.name,
        reason=reason,
        detail=detail,
        usage=meter.usage(),
        version=metric.version,
    )


def score_safely(metric: "Metric", sample: Sample, meter: Meter | None = None) -> Outcome:
    """Score a sample, blocking; whatever that raises becomes an `Unscored`, as `unscored` says.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: ConnectionError("refused")))
        >>> score_safely(metric, Sample(user_input="Why?", retrieved_contexts=["So."])).detail
        'ConnectionError: refused'
    """
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
