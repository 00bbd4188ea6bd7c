"""Taking out what must not be kept: keys from error texts, the app's texts from outcomes."""

import re
from collections.abc import Iterable
from itertools import groupby

from ragstone.outcome import Outcome, Score, Unscored
from ragstone.sample import Sample

_HIDDEN = "[hidden]"
_QUOTED, _SHORTEST = 24, 8
LONGEST = 2_000
"""Of a text that is an error's and is scrubbed where the app waits."""
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
    | \b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|ghs|github_pat|glpat|xox[abps]|pat|nvapi|r8)[-_][A-Za-z0-9_*-]{8,}
    | \bAKIA[0-9A-Z]{12,}
    | \bAIza[0-9A-Za-z_-]{20,}
    | \beyJ[\w-]{8,2000}\.[\w-]{8,}(?:\.[\w-]*)?
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----.*?(?:-----END[A-Z ]{0,40}-----|\Z)
    """,
    re.DOTALL,
)


def scrubbed(text: str) -> str:
    """Return the text with keys, tokens and passwords of the usual forms replaced by "[hidden]".

    Example:
        >>> scrubbed("401: Incorrect API key provided: sk-proj-abcdefgh. See https://u:pw1@example.org")
        '401: Incorrect API key provided: [hidden] See https://u:[hidden]@example.org'
    """
    return _SECRETS.sub(lambda found: f"{found['before'] or found['user'] or ''}{_HIDDEN}", text)


def words(error: BaseException, most: int) -> str:
    """Return an exception's type and what it says, without keys, in at most so many characters of its own.

    Example:
        >>> words(ConnectionError("https://me:pw1@example.org refused"), 200)
        'ConnectionError: https://me:[hidden]@example.org refused'
    """
    try:
        said = scrubbed(str(error)[:LONGEST])[:most]
    except Exception:  # an exception of somebody's whose text cannot be had
        said = "(it does not say what)"
    return f"{type(error).__name__}: {said}"


def kept(outcome: Outcome, sample: Sample, *, store_text: bool) -> Outcome:
    """Return the outcome as it may be stored: error texts scrubbed, and without the app's texts unless they are stored.

    What stays without them: value, breakdown, each verdict's id, kind, word and probability, and the places of its
    evidence. A reply that could not be read is not quoted, nor what an error quotes of the sample.
    """
    if isinstance(outcome, Unscored):
        hide = outcome.reason == "judge_unparseable" and not store_text
        detail = "the judge's reply could not be read" if hide else scrubbed(outcome.detail)
        if not store_text:
            texts = (sample.user_input or "", *sample.retrieved_contexts, sample.response or "")
            detail = without(detail, texts)
        return outcome.model_copy(update={"detail": detail})
    return outcome if store_text else _without_text(outcome)


def without(detail: str, texts: Iterable[str]) -> str:
    """Return a message with "[text]" for what it quotes of the texts: 24 characters in a row, or all of a shorter one.

    Texts of less than 8 characters are not looked for.

    Example:
        >>> without("400: content filtered: 'Who is the man next door?'", ["Who is the man next door?"])
        "400: content filtered: '[text]'"
    """
    quoted: set[int] = set()
    for text in texts:
        length = min(_QUOTED, len(text))
        if length >= _SHORTEST:
            for start in _worth_a_look(detail, text, length):
                if detail[start : start + length] in text:
                    quoted.update(range(start, start + length))
    runs = groupby(range(len(detail)), key=quoted.__contains__)
    return "".join("[text]" if hidden else "".join(detail[place] for place in places) for hidden, places in runs)


def _worth_a_look(detail: str, text: str, length: int) -> list[int]:
    """Return where a quotation may begin: each one holds a whole block of half its length, so few blocks tell."""
    half = (length + 1) // 2
    blocks = [at for at in range(0, len(detail) - half + 1, half) if detail[at : at + half] in text]
    last = len(detail) - length
    return sorted({start for at in blocks for start in range(max(0, at + half - length), min(at, last) + 1)})


def _without_text(score: Score) -> Score:
    verdicts = tuple(
        verdict.model_copy(
            update={
                "text": "",
                "evidence": tuple(passage.model_copy(update={"text": ""}) for passage in verdict.evidence),
            }
        )
        for verdict in score.verdicts
    )
    return score.model_copy(update={"reason": "", "verdicts": verdicts})
