"""The results file of a run that goes on from it."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from heapq import merge
from pathlib import Path
from typing import Any

from ragstone.batch.earlier import texts_digest
from ragstone.cli.output import ResultsFile, echo, new_name
from ragstone.report.aggregates import key_of
from ragstone.report.report import Report
from ragstone.results.read import open_results, write_results
from ragstone.results.record import Record, row_of


class ResumedFile(ResultsFile):
    """The results file of a run that goes on from it: nothing that was paid for is lost.

    What comes is written to a file beside it, `PATH.part`, and joined with it at the end; what a killed run left
    there, at once.

    Args:
        path: The file.
        title: The name of the rows' source.
        info: The run, by the first line.

    Raises:
        NotThere: Another process is writing to it.
        ResultsError: It holds no results.
    """

    def __init__(self, path: str, title: str, info: Mapping[str, Any]) -> None:
        super().__init__(f"{path}.part", info, texts=True)
        self.named, self.out, self._title = True, path, title
        if self._path.stat().st_size:
            self._join(Report.load(self._path))
        self._new = True
        before, now = (each.get("judges", {}) for each in (open_results(path).info, info))
        if others := [name for name, judge in now.items() if before.get(name, judge) != judge]:
            asked = f"the judge of {', '.join(others)} has other settings, or another server, than in that file"
            echo(f"--resume {path}: {asked}; what was judged there is kept.", err=True, needed=False)

    def finish(self, report: Report) -> None:
        """Put the run's results in the file, beside earlier ones that it has not."""
        if self.begun:
            self._join(report)
            self._path.unlink()

    def _join(self, report: Report) -> None:
        """Write results to the file, beside those that it has; to a new one, where it has other texts of a sample."""
        texts, done, differ = dict[str, set[str]](), set[object](), False
        for record in report.results(samples=True):
            done.add((record.sample_id, digest := texts_digest(record.sample), key_of(record)))
            texts.setdefault(record.sample_id, set()).add(digest)
        left: list[Record] = []
        earlier = Report.load(self.out)
        for record in earlier:
            if (record.sample_id, digest := texts_digest(record.sample), key_of(record)) not in done:
                left.append(record)
                differ |= digest not in texts.get(record.sample_id, {digest})
        metrics = {each.key: asdict(each) for each in (*earlier.metrics, *report.metrics)}
        if differ:
            before, self.out, self.named, left = self.out, new_name(), False, []
            why = f"has other texts of samples that {self._title} has, too; it stays as it is"
            echo(f"--resume {before}: {why}, and the results of this run are in {self.out}", err=True, needed=False)
        records = merge(report.results(samples=True), sorted(left, key=row_of), key=row_of)
        write_results(Path(os.path.realpath(self.out)), records, {**self._info, "metrics": [*metrics.values()]})
