"""`evaluate` and `aevaluate`: a data set in, a report out."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ragstone.batch.run import Metrics, RunOptions
    from ragstone.report.report import Report
    from ragstone.sources import Source


def evaluate(samples: "Source", metrics: "Metrics" = None, **options: "Unpack[RunOptions]") -> "Report":
    """Score every sample by every metric, and report.

    Works in scripts, in threads and where an event loop runs already (Jupyter, uvloop), which it then blocks. A sample
    that cannot be scored is `Unscored`, with the reason, and touches no other; there is no time-out on the whole. A
    judge that says "slow down" (429, 500, 502, 503, 504, 529, Retry-After) gets fewer calls, and is asked again. One
    that fails on 100 samples in a row, or that refuses the first calls for good (401, 404, or 403 on three samples
    without a word of moderation), is not asked any more: the rest is `Unscored("judge_error")`, a warning is logged,
    and the report's `gave_up` says why.

    Ctrl-C finishes the calls in flight and raises `Interrupted`; a second one stops at once. With a journal,
    the same call goes on from there, as after a crash or `kill -9`: what was judged is not judged again.

    Args:
        samples: What to score: a list, generator or asynchronous generator of `Sample`s or dicts, a pandas or polars
            DataFrame, a Hugging Face or Arrow table, or the path of a file or folder (see `rows_of`). Generators and
            files are read in a thread, no further ahead than is needed.
        metrics: What to score by: metrics, or their names ("response_relevancy", "my_pkg:Polite"), or a group's name
            ("rag", "summary", "golden"); no two metrics of one name. Metrics without a judge get `llm`. None: the first
            row with contexts and a response decides (of the first 100): "rag" if it has a question, else "summary". A
            line on standard error says so.
        **options: See `RunOptions`.

    Returns:
        The report; its results are in the order of the input.

    Raises:
        ValueError: An argument is out of range, names nothing, or two metrics have one name; or none is named, and
            the rows do not say which.
        TypeError: `samples` or `metrics` is no such thing.
        SourceError: The samples cannot be read; its `report` holds what was scored.
        JournalError: The journal cannot be read or written; what it holds is safe.
        NoKeyError: There is a journal, and a metric has an option, such as a lambda, that it cannot recognise again.
        Interrupted: Ctrl-C. It is a KeyboardInterrupt, and its `report` holds what was scored.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> judge = FakeLLM(lambda request: {"ids": [1]})
        >>> rows = [{"question": "Who wrote Emma?", "contexts": ["Jane Austen wrote it. It rains."]}]
        >>> report = evaluate(rows, ["context_relevancy"], llm=judge)
        >>> [result.outcome.value for result in report.results()]
        [0.5]
    """
    from ragstone.batch.run import Run  # loaded when first used

    return Run(samples, metrics, options).evaluated()


async def aevaluate(samples: "Source", metrics: "Metrics" = None, **options: "Unpack[RunOptions]") -> "Report":
    """Score every sample by every metric on the running event loop; otherwise as `evaluate`.

    Cancelled, it calls off what is in flight and leaves no task behind; with a journal, the same call goes on.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> judge = FakeLLM(lambda request: {"ids": [1]})
        >>> import asyncio
        >>> rows = [{"question": "Who?", "contexts": ["Ann. Bob."]}]
        >>> report = asyncio.run(aevaluate(rows, ["context_relevancy"], llm=judge))
        >>> [result.outcome.value for result in report.results()]
        [0.5]
    """
    from ragstone.batch.run import Run

    run = Run(samples, metrics, options)
    await run.all()
    return run.report()
