"""What a run was made with, kept beside its scores: for the table's heading, and so that two runs never mix."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .labels import replace_file
from .rows import DataError

OURS = "ragstone"
"""The system that others are compared with."""

_FREE = ("date", "python", "ragstone")  # may differ between one part of a run and the next


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a system's scores were made with.

    Attributes:
        judge: The judge's model.
        embedder: The embedder's; None where none was needed so far.
        options: The metrics' options that are not the default.
        repeat: Draws of each row.
        ragstone: Version of ragstone.
        python: Version of Python, and the machine.
        date: Of the last run, as year-month-day.
    """

    judge: str
    embedder: str | None
    options: Mapping[str, Mapping[str, Any]]
    repeat: int
    ragstone: str
    python: str
    date: str


def keep_facts(path: Path, system: str, facts: Facts) -> None:
    """Write a system's facts beside those of others.

    Raises:
        DataError: The scores that are there were made with others.
    """
    known = read_facts(path)
    if system in known:
        old, new = asdict(known[system]), json.loads(json.dumps(asdict(facts)))
        if old["embedder"] is None or new["embedder"] is None:
            old["embedder"] = new["embedder"] = old["embedder"] or new["embedder"]
        for name in old.keys() - set(_FREE):
            if old[name] != new[name]:
                raise DataError(
                    f"{path}: the scores of {system!r} were made with {name} {old[name]!r}, not {new[name]!r}; "
                    "give another --out, or another --name to have both in one table"
                )
        facts = Facts(**new)
    known[system] = facts
    text = json.dumps({name: asdict(each) for name, each in sorted(known.items())}, indent=2)
    replace_file(path, [text])


def read_facts(path: Path) -> dict[str, Facts]:
    """Return the facts of each system that has some.

    Raises:
        DataError: The file holds something else.
    """
    if not path.exists():
        return {}
    try:
        return {name: Facts(**each) for name, each in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: is no record of a run ({error})") from None
