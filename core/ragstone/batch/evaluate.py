"""`evaluate` and `aevaluate`: a data set in, a report out."""

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ragstone.batch.run import BatchRun
from ragstone.limits.limits import Limits
from ragstone.report.report import Report

P = ParamSpec("P")
T = TypeVar("T")


def _takes(options: Callable[P, object]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Give a function the parameters of another one, for type checkers, editors and `help`."""

    def given(function: Callable[..., T]) -> Callable[P, T]:
        returned = inspect.signature(function).return_annotation
        vars(function)["__signature__"] = inspect.signature(options).replace(return_annotation=returned)
        return function

    return given


@_takes(BatchRun)
def evaluate(*samples: Any, **others: Any) -> Report:  # noqa: ANN401 - of `BatchRun`
    """Score every sample by every metric, and report.

    Works in scripts, in threads and inside a running event loop (Jupyter, uvloop), which it blocks. A sample
    that cannot be scored is `Unscored`, with the reason, and touches no other; there is no time-out on the whole. A
    judge that says "slow down" (429, 500, 502, 503, 504, 529, Retry-After) gets fewer calls, and is asked again. One
    that fails on 100 samples in a row, or that refuses the first calls for good (401, 404, or 403 on three samples
    without a word of moderation), is not asked any more: the rest is `Unscored("judge_error")`, a warning is logged,
    and the report's `gave_up` says why.

    Ctrl-C finishes the calls in flight and raises `Interrupted`; a second one stops at once. With a journal, the same
    call goes on from there, also after a crash or `kill -9`: nothing is judged twice.

    Args:
        samples: A list or generator of `Sample`s or dicts, a pandas or polars DataFrame, a Hugging Face
            or Arrow table, or the path of a file or folder (see `rows_of`). Generators and files are read in a thread,
            no further ahead than is needed.
        metrics: Metrics, or their names ("response_relevancy", "my_pkg:Polite"), or a group's name
            ("rag", "summary", "golden"); no two metrics of one name. Metrics without a judge get `llm`. None: the first
            row with contexts and a response decides (of the first 100): "rag" if it has a question, else "summary". A
            line on standard error says so.
        llm: The judge of metrics that are given by name or lack one: a judge, its name (see `ragstone.judge_names`), or
            a model object of a framework, which its integration wraps.
        writer: The writer of these metrics, if the judge does not write (`Metric.writer`); as `llm`.
        embedder: Their embedder; as `llm`. By default the one that goes with the judge.
        fields: The key or column by the sample's field, such as {"user_input": "query"}, where it is none of the known
            names (ragstone's, ragas', DeepEval's). Dots name inner keys ("outputs.answer"). "phoenix": Phoenix' rows,
            whose `reference` is the context.
        group: The group of rows that depend on each other: a field's name ("user_input", "thread_id"), or
            "metadata.NAME". Means, intervals, comparisons and the gate then draw groups, not rows; a row without the
            field is a group of its own. By default rows of one `thread_id` in their metadata are a group, and so are
            rows of one conversation by their histories.
        limits: The limits on judges: calls at once, rates, caps and time-outs (`Limits`).
        price: The price of a million prompt tokens, and of a million reply tokens. The report then says the spending.
        journal: A file, made if need be, where each outcome and reply is kept as it comes, and looked for before a
            judge is asked. One run at a time may use it; another one raises `JournalError`.
        resume: The report of an earlier run, such as an interrupted one, or the path of its results file.
            Outcomes of samples with the same id and texts, by the same metric, version, judge and set-up, are kept.
            Failures outside of the sample are judged again. Nothing is written to it.
        share_replies: Whether requests that are the same share one reply: samples of one source are then asked the
            same questions, for one call. Without it, a journal keeps outcomes only. Default: True.
        progress: Whether to show how far it is: a bar on a terminal and in a notebook, else a line on standard error
            each 30 seconds. "auto", the default: the bar, but no lines. It has an end where `samples` has a
            length.
        name: The name of this run in the report.
        stop_on_give_up: Whether the run ends when its judge is given up. By default the rest of the samples is
            `Unscored("judge_error")`.
        **others: There are none. An option that there is not, such as another library's, raises a TypeError that names
            it.

    Returns:
        The report; its results are in the order of the input.

    Raises:
        ValueError: An argument is out of range, names nothing, or two metrics have one name; or none is named, and
            the rows do not say which; or none of the first 100 rows has the field that `group` names.
        TypeError: `samples` or `metrics` is no such thing, or there is no such option.
        SourceError: The samples cannot be read; its `report` holds the scores so far.
        JournalError: The journal cannot be read or written; its contents are safe.
        NoKeyError: There is a journal, and a metric has an option, such as a lambda, that it cannot recognise again.
        Interrupted: Ctrl-C. It is a KeyboardInterrupt, and its `report` holds the scores so far.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> judge = FakeLLM(lambda request: {"ids": [1]})
        >>> rows = [{"question": "Who wrote Emma?", "contexts": ["Jane Austen wrote it. It rains."]}]
        >>> report = evaluate(rows, ["context_relevancy"], llm=judge)
        >>> [result.outcome.value for result in report.results()]
        [0.5]
    """
    return _run_of(*samples, **others).evaluated()


@_takes(BatchRun)
async def aevaluate(*samples: Any, **others: Any) -> Report:  # noqa: ANN401 - of `BatchRun`
    """Score every sample by every metric on the running event loop; otherwise as `evaluate`.

    When cancelled, it cancels the calls in flight and leaves no task behind; with a journal, the same call goes on.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> judge = FakeLLM(lambda request: {"ids": [1]})
        >>> import asyncio
        >>> rows = [{"question": "Who?", "contexts": ["Ann. Bob."]}]
        >>> report = asyncio.run(aevaluate(rows, ["context_relevancy"], llm=judge))
        >>> [result.outcome.value for result in report.results()]
        [0.5]
    """
    run = _run_of(*samples, **others)
    await run.all()
    return run.report()


def _run_of(*samples: Any, **others: Any) -> BatchRun:  # noqa: ANN401 - of `BatchRun`
    taken = inspect.signature(BatchRun)
    if unknown := [name for name in others if name not in taken.parameters]:
        # Loaded where there are some.
        from ragstone.renamed import refuse_options

        limits = {name: f"write limits=Limits({name}=...)" for name in Limits.__dataclass_fields__}
        refuse_options("evaluate", unknown, taken.parameters, limits)
    try:
        given = taken.bind(*samples, **others)
    except TypeError as error:
        # Python's own would name the class.
        raise TypeError(f"evaluate: {error}; samples and metrics come by position, llm= and others by name") from None
    return BatchRun(*given.args, **given.kwargs)
