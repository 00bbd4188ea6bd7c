"""`evaluate` and `aevaluate`: a data set in, a report out."""

import contextlib
import logging
import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial
from pathlib import Path

from ragstone.batch.given import Given
from ragstone.batch.interrupts import Interrupts
from ragstone.batch.progress import Progress, Shown
from ragstone.batch.runner import Runner
from ragstone.limits.gate import Gate
from ragstone.metrics.base import Metric
from ragstone.outcome import Score
from ragstone.reporting.report import Report
from ragstone.sample import BadLine
from ragstone.sources import Source, rows_of
from ragstone.store.journal.journal import Journal
from ragstone.store.spill import SpilledResults

_log = logging.getLogger(__name__)


def evaluate(
    samples: Source,
    metrics: Sequence[Metric],
    *,
    fields: Mapping[str, str] | None = None,
    repeat: int = 1,
    max_concurrency: int = 16,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    call_timeout: float | None = None,
    sample_timeout: float | None = None,
    journal: "str | Path | Journal | None" = None,
    share_replies: bool = True,
    progress: Shown = "auto",
    name: str = "",
) -> Report:
    """Score every sample by every metric, and report.

    Works in scripts, in threads and where an event loop runs already (Jupyter, uvloop), which it then blocks. A sample
    that cannot be scored is `Unscored`, with the reason, and touches no other; there is no time-out on the whole. A
    judge that says "slow down" (429, 500, 502, 503, 504, 529, Retry-After) gets fewer calls, and is asked again. One
    that fails on 100 samples in a row, or that refuses the first call for good (401, 403, 404), is not asked any more:
    the rest is `Unscored("judge_error")`, and a warning is logged.

    Ctrl-C finishes the calls in flight and raises KeyboardInterrupt; a second one stops at once. With a journal,
    the same call goes on from there, as after a crash or `kill -9`: what was judged is not judged again.

    Args:
        samples: What to score: a list, generator or asynchronous generator of `Sample`s or dicts, a DataFrame, a
            Hugging Face or Arrow table, or the path of a .jsonl, .json, .csv, .tsv or .parquet file (see `rows_of`).
            Generators and files are read in a thread, no further ahead than is needed.
        metrics: What to score by; no two of one name.
        fields: The key or column by the sample's field, such as {"user_input": "query"}, where it is none of the
            known names (ragstone's, ragas', DeepEval's).
        repeat: How often each metric scores each sample, to know the judge's own noise.
        max_concurrency: Calls to judges in flight at most (not samples), and to embedders as many. A judge may have
            a limit of its own, such as `OpenAICompatible(max_concurrency=...)`.
        requests_per_minute: Calls to judges at most, spread evenly. A retry by the judge's own client is not seen.
        tokens_per_minute: Tokens of judges at most: estimated before a call, then corrected by what it took.
        call_timeout: Seconds for one call. A call that takes longer makes its sample `Unscored("timeout")`.
        sample_timeout: Seconds for one sample by one metric in which its calls are in flight. The time in which they
            wait for their turn is not counted.
        journal: A file, made if need be, where each outcome and reply is kept as it comes, and looked for before a
            judge is asked; or a `Journal`. Runs that use it at the same time share the work.
        share_replies: Whether requests that are the same share one reply: samples of one source are then asked the
            same questions, for one call. Draws of `repeat` never share. Without it, a journal keeps outcomes only.
        progress: Whether to show a bar; "auto": on a terminal and in a notebook.
        name: What the report calls this run.

    Returns:
        The report; its results are in the order of the input.

    Raises:
        ValueError: An argument is out of range, or two metrics have one name.
        TypeError: `samples` or `metrics` is no such thing.
        SourceError: The samples cannot be read.
        JournalError: The journal cannot be read or written; what it holds is safe.
        NoKeyError: There is a journal, and a metric has an option, such as a lambda, that it cannot recognise again.
        KeyboardInterrupt: Ctrl-C.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))
        >>> rows = [{"question": "Who wrote Emma?", "contexts": ["Jane Austen wrote it. It rains."]}]
        >>> [result.outcome.value for result in evaluate(rows, [metric]).results()]
        [0.5]
    """
    given = Given(
        samples, metrics, fields, repeat, max_concurrency, requests_per_minute, tokens_per_minute, call_timeout,
        sample_timeout, journal, share_replies, progress, name,
    )  # fmt: skip
    interrupts = Interrupts()
    report: Report | None = None
    with contextlib.suppress(KeyboardInterrupt):
        report = interrupts.run(partial(_reported, given, interrupts.on_first))
    if report is None or interrupts.count:
        if journal is not None:
            path = journal.path if isinstance(journal, Journal) else journal
            _say(f"Interrupted. What was judged is in {path}: make the same call again, and it goes on from there.")
        raise KeyboardInterrupt
    return report


async def aevaluate(
    samples: Source,
    metrics: Sequence[Metric],
    *,
    fields: Mapping[str, str] | None = None,
    repeat: int = 1,
    max_concurrency: int = 16,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    call_timeout: float | None = None,
    sample_timeout: float | None = None,
    journal: "str | Path | Journal | None" = None,
    share_replies: bool = True,
    progress: Shown = "auto",
    name: str = "",
) -> Report:
    """Score every sample by every metric on the running event loop; otherwise as `evaluate`.

    Cancelled, it calls off what is in flight and leaves no task behind; with a journal, the same call goes on.

    Example:
        >>> from ragstone import ContextRelevancy
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))
        >>> import asyncio
        >>> report = asyncio.run(aevaluate([{"question": "Who?", "contexts": ["Ann. Bob."]}], [metric]))
        >>> [result.outcome.value for result in report.results()]
        [0.5]
    """
    given = Given(
        samples, metrics, fields, repeat, max_concurrency, requests_per_minute, tokens_per_minute, call_timeout,
        sample_timeout, journal, share_replies, progress, name,
    )  # fmt: skip
    return await _reported(given)


async def _reported(given: Given, on_first_interrupt: Callable[[Callable[[], object]], None] | None = None) -> Report:
    """Score everything; on a loop of our own if interrupts are to be told of."""
    rows = rows_of(given.samples, given.fields)
    with contextlib.ExitStack() as stack:
        journal = given.journal
        if journal is not None and not isinstance(journal, Journal):
            journal = stack.enter_context(Journal(journal))
        gate = Gate(
            given.max_concurrency,
            requests_per_minute=given.requests_per_minute,
            tokens_per_minute=given.tokens_per_minute,
            call_timeout=given.call_timeout,
            share_replies=given.share_replies,
            replies=journal,
            own_loop=on_first_interrupt is not None,
        )
        runner = Runner(
            rows,
            given.metrics,
            gate,
            repeat=given.repeat,
            journal=journal,
            sample_timeout=given.sample_timeout,
            in_memory=isinstance(given.samples, (list, tuple)),
            flows=2 * given.max_concurrency,
            window=16 * given.max_concurrency,
        )
        total = _length(given.samples)
        with Progress(gate, total, shown=given.progress) as bar:
            if on_first_interrupt is not None:
                on_first_interrupt(partial(_interrupted, runner, gate, bar))
            report = await _collected(runner, given, bar, None if journal is None else journal.path.absolute().parent)
        if journal is not None:
            journal.flush()
    for why in runner.not_asked:
        _log.warning("Gave up: %s; what was not asked is unscored (judge_error).", why)
    return report


async def _collected(runner: Runner, given: Given, bar: Progress, folder: Path | None) -> Report:
    spool, bad = SpilledResults(folder), list[BadLine]()
    source = given.samples if isinstance(given.samples, (list, tuple)) else ()
    async with contextlib.aclosing(runner.results()) as items:
        async for item in items:
            if isinstance(item, BadLine):
                bad.append(item)
                bar.at(item.line)
            else:
                row, sample = item.row.line - 1, item.row.sample
                spool.add(item.results, sample, held=row < len(source) and source[row] is sample)
                bar.at(item.row.line, sum(not isinstance(result.outcome, Score) for result in item.results))
    return Report(spool, given.metrics, bad_rows=bad, name=given.name)


def _length(samples: object) -> int | None:
    """Return how many samples there are, where that is known."""
    return len(samples) if isinstance(samples, Sized) and not isinstance(samples, str) else None


def _interrupted(runner: Runner, gate: Gate, bar: Progress) -> None:
    if gate.in_flight:
        with bar.writing(sys.stderr):
            _say(f"Finishing {gate.in_flight} judge call(s) in flight; Ctrl-C again stops at once.")
    runner.stop()


def _say(text: str) -> None:
    with contextlib.suppress(OSError, AttributeError):  # nobody may be there to read it
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
