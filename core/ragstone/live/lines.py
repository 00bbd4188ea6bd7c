"""Lines of the log and of printed stats: what was missing, what to do, and where fields came from."""

from collections.abc import Iterable, Mapping
from typing import Literal

from ragstone.plain import printable

REASONS: Mapping[str, str] = {
    "response": "no_answer",
    "retrieved_contexts": "no_contexts",
    "user_input": "no_question",
}
"""By the field that is missing: the reason of runs that are no sample for it, and the key of a handler's advice."""
LACKING: Mapping[str, str] = {reason: field for field, reason in REASONS.items()}
"""The field that is missing, by the reason."""
Names = tuple[str, ...]
"""Those that were there: of an app's output, or of the fields of a sample."""
_NOUNS = {"response": "answer", "retrieved_contexts": "contexts", "user_input": "question"}
OTHERS = "others"
"""The source of all that came from further ones than are counted apart."""
_SOURCES_LISTED = 3
_LONGEST_ENTRY = 100


def commonest(counts: Mapping[Names, int]) -> Names:
    """The names that were there most often."""
    return max(counts, key=lambda names: counts[names], default=())


def advice_on(field: str, advice: Mapping[str, str]) -> str:
    """What handlers advise where a field is missing; without handlers, what the app can do."""
    return advice.get(REASONS.get(field, ""), "") if advice else f"Pass it: Sample({field}=...)"


def line_of_missing(
    field: str,
    times: int,
    of: Literal["run", "sample"],
    names: Iterable[str],
    advice: str = "",
    likely: str = "",
) -> str:
    """The line that says how many had no such field, which names were there, and what to do.

    NAME in the advice becomes the entry that can be meant. Where none is known, "..." stands there, which no handler
    accepts.

    Example:
        >>> advice = 'Name it: fields={"response": "NAME"}'
        >>> print(line_of_missing("response", 12, "run", ["told", "topic"], advice, "told"))
        12 runs had no answer under a usual name (there were: told, topic). Name it: fields={"response": "told"}
        >>> print(line_of_missing("response", 1, "run", ["told", "topic"], advice))
        1 run had no answer under a usual name (there were: told, topic). Name it: fields={"response": ...} (for ... write the entry's name)
    """  # noqa: E501 - a line that is printed
    listed = ", ".join([printable(name, 40) for name in names])
    there = f" (there were: {listed})" if listed else ""
    usual = "" if field == "retrieved_contexts" else " under a usual name"
    who = f"{times:,} {of}" + ("" if times == 1 else "s")
    advice = _filled(advice[:1].upper() + advice[1:], likely)
    return f"{who} had no {_NOUNS.get(field, field)}{usual}{there}. {advice}".rstrip()


def _filled(advice: str, entry: str) -> str:
    is_plain = printable(entry, _LONGEST_ENTRY) == entry and not set('"\\') & set(entry)
    if entry and is_plain:
        return advice.replace("NAME", entry)
    open_ = advice.replace('"NAME"', "...")
    return advice if open_ == advice else f"{open_} (for ... write the entry's name)"


def line_of_sources(read_from: Mapping[str, Mapping[str, int]]) -> str:
    """The line that says where the fields came from and how often; "" where none was read.

    Example:
        >>> line_of_sources({"response": {"answer": 1_200, "messages": 3}, "user_input": {"question": 1_203}})
        'response <- answer (1,200), messages (3); user_input <- question (1,203)'
    """
    said: list[str] = []
    for field, counts in read_from.items():
        ordered = sorted(counts.items(), key=lambda item: -item[1])
        sources = [f"{printable(source, 40)} ({n:,})" for source, n in ordered[:_SOURCES_LISTED]]
        if rest := sum([n for _, n in ordered[_SOURCES_LISTED:]]):
            sources.append(f"{OTHERS} ({rest:,})")
        said.append(f"{printable(field, 40)} <- {', '.join(sources)}")
    return "; ".join(said)
