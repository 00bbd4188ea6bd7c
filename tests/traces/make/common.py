"""What the makers of stored traces share: made-up texts, a monitor that notes, and the files that come of a run."""

import json
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from tests.support.noting import Noting

DATA = Path(__file__).parents[1] / "data"
PASSAGES = (
    "The harbour light of Velin was lit first in 1871. It burned oil of rape seed for fifty-seven years.",
    "In 1928 the lamp of Velin became electric. Its beam is seen from nineteen miles away.",
    "The keeper of Velin lived in the tower with two goats until 1954.",
    "Ferries to the island of Orm leave Velin at eight and at noon, from the first of May on.",
    "The museum of ropes in Velin shows a knot of 1790 that nobody could untie.",
    "Herring of Velin is smoked over juniper for nine hours.",
)
WHO_LIT = "When did the lamp of Velin become electric?"
ELECTRIC = "The lamp of Velin became electric in 1928."
WHEN_FERRIES = "When do ferries to the island of Orm leave?"
FERRIES = "Ferries to Orm leave at eight and at noon."
SIZE = 61


def vector(text: str) -> list[float]:
    """A bag of words as a vector: texts with equal words are near."""
    numbers = [0.0] * SIZE
    for word in re.findall(r"\w{3,}", text.casefold()):
        numbers[sum(ord(letter) * (place + 1) for place, letter in enumerate(word)) % SIZE] += 1
    return numbers


def clean(text: str) -> str:
    """A text without what it says of the machine that made it."""
    text = re.sub(r"""(?<=["\s(=:])\\?/(?:[\w.+-]+\\?/)+""", "/app/", text)
    text = re.sub(r'(mlflow\.source\.git\.(?:commit|branch)\\?": ?\\?")\w+', r"\1main", text)
    return re.sub(r'(mlflow\.user\\?": ?\\?")\w+', r"\1user", text)


def write(name: str, text: str, noting: Noting, packages: Iterable[str]) -> None:
    """Write a file of traces, what the live handler submitted of their runs, and the packages that made it."""
    assert not noting.errors
    names = ("user_input", "retrieved_contexts", "response")
    samples = [dict(zip(names, each, strict=True)) for each in noting.told]
    (DATA / name).write_text(clean(text.rstrip("\n")) + "\n", encoding="utf-8")
    for file, value in (("expected.json", samples), ("versions.json", {each: version(each) for each in packages})):
        path = DATA / file
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        known[name] = value
        path.write_text(json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(name, len(text), [(len(each[1]), each[2]) for each in noting.told], dict(noting.skipped))
