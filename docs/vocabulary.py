"""Write the tables of docs/fields.md from the vocabulary: `python docs/vocabulary.py`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ragstone.fields import names

PAGE = Path(__file__).parent / "fields.md"
TABLE = re.compile(r"(<!-- table: (\w+) -->\n\n)(?:\|.*\n)+")
# Beginnings of names that stand before so many words, as in `reranked_docs`, are said once.
_MANY = 8


def with_tables(page: str) -> str:
    """The page, with each table as the vocabulary is now."""
    return TABLE.sub(lambda table: table[1] + "".join(f"{line}\n" for line in _TABLES[table[2]]()), page)


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _by_name(head: str, rows: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a table whose rows begin with a name."""
    return _table(head, {_code([name]): each for name, each in rows.items()})


def _table(head: str, rows: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a table of two columns."""
    yield f"| {head} |"
    yield "|---|---|"
    for first, second in rows.items():
        yield f"| {first} | {second} |"


def _strong() -> Iterator[str]:
    return _by_name("field | strong names", {field: _names(each) for field, each in names.STRONG.items()})


def _names(several: tuple[str, ...]) -> str:
    """Names, those that are made of a step and a word for passages in few words."""
    by_step: dict[str, set[str]] = {}
    for name in several:
        step = "ground_truth" if name.startswith("ground_truth_") else name.partition("_")[0]
        by_step.setdefault(step, set()).add(name.removeprefix(f"{step}_"))
    steps = [step for step, nouns in by_step.items() if len(nouns) >= _MANY]
    if not steps:
        return _code(several)
    nouns = set.intersection(*(by_step[step] for step in steps))
    made = {f"{step}_{noun}" for step in steps for noun in nouns} - {several[0]}
    alone = [name for name in several if name not in made]
    return f"{_code(alone)}; {_code(f'{step}_' for step in steps)} before {_code(sorted(nouns))}"


def _endings() -> Iterator[str]:
    rows = {
        "ends in, unless it begins with `retrieved`": _code(names.PASSAGES),
        "does not begin with": _code(names.NOT_RETRIEVED),
    }
    return _table("a further name of contexts | words", rows)


def _weak() -> Iterator[str]:
    return _by_name("field | weak names", {field: _code(each) for field, each in names.WEAK.items()})


_TABLES = {each.__name__[1:]: each for each in (_strong, _endings, _weak)}


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
