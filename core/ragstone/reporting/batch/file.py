r"""A report as a file: one JSON object, a line for each result and for each sample, so that it is read line by line.

    {"ragstone_report": 1, "name": ..., "metrics": [...], "bad_rows": [...], "results": [
    {"id": ..., "line": 1, ...},
    ...
    ], "samples": [
    {"row": 0, "user_input": ..., ...},
    ...
    ]}

A file that `ragstone score --out` wrote is read too: it has the results' lines and nothing else.
"""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import IO, Any, cast

from pydantic import TypeAdapter, ValidationError

from ragstone.reporting.batch.facts import MetricFacts
from ragstone.sample import BadLine, Sample
from ragstone.store.private_files import open_private
from ragstone.store.record import Record, decode, encode

_FORMAT = 1
_MARK = b'{"ragstone_report":'
_SAMPLES = b'], "samples": ['
_END = b"]}"
_DEEPEST = 50
_FACTS = TypeAdapter(tuple[MetricFacts, ...])
_BAD_ROWS = TypeAdapter(tuple[BadLine, ...])


class ReportError(ValueError):
    """A file that holds no report, or no longer the one that it held; the message says why and what to do."""


def write_report(
    path: Path,
    results: Iterable[Record],
    sample_of: Callable[[int], Sample | None],
    *,
    name: str,
    facts: Iterable[MetricFacts],
    bad_rows: Iterable[BadLine],
) -> None:
    """Write a report.

    Raises:
        OSError: It cannot be written.
    """
    head = {
        "ragstone_report": _FORMAT,
        "name": name,
        "metrics": [asdict(each) for each in facts],
        "bad_rows": [asdict(each) for each in bad_rows],
    }
    rows: dict[int, None] = {}
    with replacing(path) as target:
        target.write(_encoded(json.dumps(head, ensure_ascii=False)[:-1] + ', "results": ['))
        between = b"\n"
        for result in results:
            rows[result.row] = None
            target.write(between + encode(result).encode())
            between = b",\n"
        target.write(b"\n" + _SAMPLES)
        between = b"\n"
        for row in rows:
            if (sample := sample_of(row)) is not None:
                line = json.dumps({"row": row, **_plain_fields(sample)}, ensure_ascii=False)
                target.write(between + _encoded(line))
                between = b",\n"
        target.write(b"\n" + _END + b"\n")


@contextlib.contextmanager
def replacing(path: Path) -> Generator[IO[bytes], None, None]:
    """Open a file for writing that takes its place when all is written: half of one never stands in for it.

    A new file is its owner's alone; one that exists passes its mode on.
    """
    if path.exists() and not path.is_file():  # such as /dev/stdout
        with path.open("wb") as target:
            yield target
        return
    path = path.resolve()  # what a link leads to is replaced, not the link
    part = path.with_name(f"{path.name[:200]}.{secrets.token_hex(6)}.part")  # another process may write the same file
    try:
        with open_private(part, "xb") as target:
            yield target
        with contextlib.suppress(OSError):
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _plain_fields(sample: Sample) -> dict[str, object]:
    given = sample.model_dump(exclude={"metadata"}, exclude_unset=True)
    return {**given, "metadata": _plain(sample.metadata)} if sample.metadata else given


def _plain(value: object, depth: int = 0) -> object:
    """Return what JSON can say of anything that a user put into `metadata`."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {str(key): _plain(part, depth + 1) for key, part in cast("Mapping[object, object]", value).items()}
    if depth < _DEEPEST and isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(part, depth + 1) for part in cast("Iterable[object]", value)]
    return str(value)


class InFile:
    """The results and samples of a file, read each time they are asked for.

    Attributes:
        path: The file.
        name: The report's name; "" where the file gives none.
        facts: The metrics, as far as the file says.
        bad_rows: The rows of its input that held no sample, as far as the file says.
        notes: What was wrong with the file, in sentences. Complete once `results` has been read to its end.

    Raises:
        ReportError: It is no such file, or was written by a newer version.
        OSError: It cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = ""
        self.facts: tuple[MetricFacts, ...] = ()
        self.bad_rows: tuple[BadLine, ...] = ()
        self.notes: tuple[str, ...] = ()
        self._places: dict[int, int] = {}
        with self.path.open("rb") as file:
            self._stamp = _stamp(file)
            first = file.readline()
            self._whole = first.startswith(_MARK)
            if self._whole:
                self._read_head(first)
            elif first.lstrip()[:1] in (b"{", b""):
                pass
            else:
                raise ReportError(self._no_report())

    def _read_head(self, line: bytes) -> None:
        try:
            head = json.loads(line.rstrip() + _END)
            if head["ragstone_report"] > _FORMAT:
                raise ReportError(f"{self.path}: a newer ragstone wrote it; update this one to read it")
            self.name = str(head["name"])
            self.facts = _FACTS.validate_python(head["metrics"])
            self.bad_rows = _BAD_ROWS.validate_python(head["bad_rows"])
        except ReportError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ReportError(self._no_report()) from None

    def _no_report(self) -> str:
        return (
            f"{self.path}: holds no results: give a file that `ragstone score --out` or Report.to_json wrote, "
            "as they wrote it"
        )

    def results(self) -> Iterator[Record]:
        """Yield the results in the file's order.

        Raises:
            ReportError: The file holds something else, or has changed since it was opened.
            OSError: It cannot be read.
        """
        bad: list[int] = []
        found, offset, number, ended = 0, 0, 0, False
        offsets: dict[int, int] = {}
        samples = False
        with self._opened() as file:
            for number, line in enumerate(file, 1):
                body = line.strip()
                if self._whole and number == 1:
                    pass
                elif self._whole and body == _SAMPLES:
                    samples = True
                elif self._whole and body == _END:
                    ended = True
                elif samples:
                    row = _row_of(body)
                    if row is not None:
                        offsets[row] = offset
                elif body:
                    result = _record(body.removesuffix(b",") if self._whole else body)
                    if result is None:
                        bad.append(number)
                    else:
                        found += 1
                        yield result
                offset += len(line)
        if bad and not found:
            raise ReportError(self._no_report())
        self._places = offsets
        self.notes = tuple(self._said(bad, number, ended=ended))

    def _said(self, bad: list[int], lines: int, *, ended: bool) -> Iterator[str]:
        if bad == [lines] or (self._whole and not ended):
            yield f"{self.path.name}: its end is missing, as where a run was killed: what is whole was read"
        if bad and bad != [lines]:
            some = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
            yield f"{self.path.name}: {len(bad):,} line(s) hold no result and were left out: {some}"

    def sample(self, row: int) -> Sample | None:
        """Return a row's sample. Read `results` to its end before."""
        if row not in self._places:
            return None
        with self._opened() as file:
            file.seek(self._places[row])
            try:
                given = json.loads(file.readline().strip().removesuffix(b","))
                del given["row"]
                return Sample.model_validate(given)
            except (ValidationError, ValueError, KeyError, TypeError):
                return None

    @contextlib.contextmanager
    def _opened(self) -> Generator[IO[bytes], None, None]:
        with self.path.open("rb") as file:
            if _stamp(file) != self._stamp:
                raise ReportError(
                    f"{self.path}: has changed since it was loaded, and is read as it is needed; load it again"
                )
            yield file


def _record(line: bytes) -> Record | None:
    try:
        return decode(line)
    except ValueError:
        return None


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace")


def _row_of(line: bytes) -> int | None:
    """Return the row that a sample's line begins with: nothing else of it is looked at yet."""
    start = b'{"row": '
    if not line.startswith(start):
        return None
    digits = line[len(start) : line.find(b",", len(start))]
    return int(digits) if digits.isdigit() and len(digits) < 19 else None


def _stamp(file: IO[Any]) -> tuple[int, int, int, int]:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
