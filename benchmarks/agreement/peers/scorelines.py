"""What the peers' scripts share: rows in, a line of numbers per row and metric out. Standard library only.

A script gives `main` a function that makes its scorers, by the name of the ragstone metric whose rows they score.
"""

import argparse
import asyncio
import json
import math
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

MODEL = "local"  # the one model that the server has; it takes any name

Data = Mapping[str, Any]
"""A row as the file has it."""


METRICS = {
    "ContextRelevancy": "ContextRelevancy",
    "ResponseRelevancy": "ResponseRelevancy",
    "SummarizationScore": "SummarizationScore",
    "AlignmentCoverage": "AlignmentCoverage",
    "Summarization": "AlignmentCoverage",
}
"""The ragstone metrics by the names that `use.metric` has for them."""


class Row(NamedTuple):
    file: str  # without ".jsonl"
    data: Data

    @property
    def metrics(self) -> tuple[str, ...]:
        """The ragstone metrics that the row is for."""
        named = [part.partition("(")[0].strip() for part in self.data["use"]["metric"].split("+")]
        if unknown := [name for name in named if name not in METRICS]:
            raise SystemExit(f"{self.file}: use.metric: {unknown[0]!r} is none of {', '.join(METRICS)}")
        return tuple(METRICS[name] for name in named)

    @property
    def group(self) -> str:
        """The pair or document that the row is compared within, or the row itself."""
        task = self.data["use"]["task"]
        name = "doc_id" if task.startswith("correlation") and "doc_id" in self.data else "pair_id"
        return str(self.data[name if task.startswith(("pairwise", "correlation")) else "id"])


class Found(NamedTuple):
    """What a peer says of a row: its score, or why it has none."""

    value: float | None
    parts: Mapping[str, float] = {}
    sentences: Sequence[tuple[int, int, bool, None]] | None = None  # passage, sentence, chosen, no probability
    unscored: str | None = None


class Place(NamedTuple):
    """Where the judge is."""

    url: str  # ends with /v1
    key: str
    seconds: float  # a row's limit


Scorer = Callable[[Data], Awaitable[Found]]
Scorers = Mapping[str, Scorer]


def rows(folder: Path, limit: int | None = None, part: str = "") -> Iterator[Row]:
    """Read the labelled rows of the files with `part` in their name; of each, whole groups until there are `limit`."""
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.jsonl")):
        file = path.stem
        if part in path.name:
            with path.open(encoding="utf-8") as lines:
                data = [json.loads(line) for line in lines if line.strip()]
            labelled = [Row(file, each) for each in data if each["use"]["target"] is not None]
            yield from labelled if limit is None else _first(labelled, limit)


def _first(labelled: Sequence[Row], limit: int) -> Iterator[Row]:
    sizes = Counter(row.group for row in labelled)
    taken: set[str] = set()
    for row in labelled:
        if row.group not in taken and sum(sizes[group] for group in taken) < limit:
            taken.add(row.group)
    yield from (row for row in labelled if row.group in taken)


def done(out: Path) -> set[tuple[str, str, str]]:
    """Return the file, id and metric of each line that is there; a line cut short by a kill is taken away."""
    if not out.exists():
        return set()
    content = out.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        out.write_bytes(whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    return {(Path(line["file"]).name.removesuffix(".jsonl"), line["id"], line["metric"]) for line in lines}


def used(place: Place) -> dict[str, int] | None:
    """Return the calls and tokens that the key has used; None where the server does not say.

    Raises:
        OSError: There is no server.
    """
    headers = {"Authorization": f"Bearer {place.key}"}
    request = urllib.request.Request(f"{place.url}/usage", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            content = json.load(reply)
    except (urllib.error.HTTPError, ValueError):
        return None
    return content if isinstance(content, dict) and "calls" in content else None


async def found(scorer: Scorer, data: Data, seconds: float) -> Found:
    """Score a row; a failure is the class of its exception, and the time limit is "timeout"."""
    deadline = time.monotonic() + seconds
    try:
        result = await asyncio.wait_for(scorer(data), seconds)
    except Exception as error:
        # A client's own time limit has many names.
        return Found(None, unscored="timeout" if time.monotonic() >= deadline else type(error).__name__)
    if result.value is not None and not math.isfinite(result.value):
        return result._replace(value=None, unscored="not finite")
    return result


async def score(todo: Sequence[tuple[Row, str]], scorers: Scorers, place: Place, out: Path) -> None:
    """Append a line for each row and metric, one after another.

    Raises:
        OSError: The judge has gone; the line of the row that it was lost at is not written.
    """
    for number, (row, metric) in enumerate(todo, 1):
        before, start = used(place), time.perf_counter()
        result = await found(scorers[metric], row.data, place.seconds)
        seconds, after = time.perf_counter() - start, used(place)
        line = {
            "file": row.file,
            "id": row.data["id"],
            "metric": metric,
            "value": result.value,
            "unscored": result.unscored,
            "parts": dict(result.parts),
            "sentences": result.sentences,
            **{name: after[name] - before[name] if before and after else None for name in _COUNTED},
            "seconds": round(seconds, 2),
            "row_timeout": place.seconds,
        }
        with out.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
        said = result.unscored if result.value is None else f"{result.value:.3f}"
        print(f"{number}/{len(todo)} {row.file} {row.data['id']} {metric}: {said}, {seconds:.0f} s", flush=True)


_COUNTED = ("calls", "input_tokens", "output_tokens")


def main(name: str, make: Callable[[Place], Scorers]) -> None:
    """Score a folder as the command line says; `name` is the key that the server counts under."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="of JSONL files, or one of them")
    parser.add_argument("--url", required=True, help="of the judge, as http://127.0.0.1:8399/v1")
    parser.add_argument("--out", type=Path, required=True, help="JSONL, appended to; what is there is not scored again")
    parser.add_argument("--limit", type=int, help="rows of each file, rounded up to whole groups")
    parser.add_argument("--file", default="", help="only files with this in their name")
    parser.add_argument("--row-timeout", type=float, default=300.0, help="seconds for a row, as for ragstone")
    args = parser.parse_args()
    place = Place(args.url.rstrip("/"), name, args.row_timeout)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    scorers, there = make(place), done(args.out)
    todo = [
        (row, metric)
        for row in rows(args.folder, args.limit, args.file)
        for metric in row.metrics
        if metric in scorers and (row.file, row.data["id"], metric) not in there
    ]
    try:
        asyncio.run(score(todo, scorers, place, args.out))
    except OSError as error:
        raise SystemExit(f"{args.url}: {error}; the lines so far are in {args.out}: run again to go on") from error
