"""`evaluate` and `aevaluate`: a data set in, a report out."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import NoReturn

    from ragstone.batch.run import Metrics, RunOptions
    from ragstone.batch.runner import Shown
    from ragstone.judge import LLM, Embedder, Judge
    from ragstone.report.report import Report
    from ragstone.results.record import Record
    from ragstone.sample import BadLine
    from ragstone.sources import Source


def evaluate(
    samples: "Source",
    metrics: "Metrics" = None,
    *,
    llm: "Judge | str | object | None" = None,
    writer: "LLM | str | object | None" = None,
    embedder: "Embedder | str | object | None" = None,
    fields: "Mapping[str, str] | str | None" = None,
    group: str | None = None,
    max_concurrency: int = 16,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float] | None = None,
    call_timeout: float | None = None,
    sample_timeout: float | None = None,
    journal: "str | Path | None" = None,
    share_replies: bool = True,
    progress: "Shown" = "auto",
    total: int | None = None,
    name: str = "",
    on_result: "Callable[[Sequence[Record]], object] | None" = None,
    on_bad_row: "Callable[[BadLine], object] | None" = None,
    stop_on_give_up: bool = False,
    **renamed: "NoReturn",
) -> "Report":
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
        samples: What to score: a list or generator of `Sample`s or dicts, a pandas or polars DataFrame, a Hugging Face
            or Arrow table, or the path of a file or folder (see `rows_of`). Generators and files are read in a thread,
            no further ahead than is needed.
        metrics: What to score by: metrics, or their names ("response_relevancy", "my_pkg:Polite"), or a group's name
            ("rag", "summary", "golden"); no two metrics of one name. Metrics without a judge get `llm`. None: the first
            row with contexts and a response decides (of the first 100): "rag" if it has a question, else "summary". A
            line on standard error says so.
        llm: The judge of metrics that are given by name or lack one: a judge, its name (see `ragstone.judge_names`), or
            a model object of a framework, which its integration wraps.
        writer: What writes for these metrics where the judge does not (`Metric.writer`); as `llm`.
        embedder: Their embedder; as `llm`. By default the one that goes with the judge.
        fields: The key or column by the sample's field, such as {"user_input": "query"}, where it is none of the
            known names (ragstone's, ragas', DeepEval's). Dots lead inward ("outputs.answer"). "phoenix": Phoenix' rows,
            whose `reference` is the context.
        group: What rows depend on each other by: a field's name ("user_input", "thread_id"), or "metadata.NAME". Means,
            intervals, comparisons and the gate then draw groups, not rows; a row without the field is a group of its
            own. By default rows of one `thread_id` in their metadata are a group, and rows of which one's history holds
            the other's question and response.
        max_concurrency: Calls to judges in flight at most (not samples), and to embedders as many. A judge may have
            a limit of its own, such as `OpenAICompatible(max_concurrency=...)`; the embedded one's is 1. Default: 16.
        requests_per_minute: Calls to judges at most, spread evenly. A retry by the judge's own client is not seen.
        tokens_per_minute: Tokens of judges at most: estimated before a call, then corrected by what it took.
        max_calls: Calls to judges at most, in this run, each try counted; tries by the judge's own client are not
            seen. An evaluation that has no room makes no call and is `Unscored("over_budget")`; with a journal, the
            same call goes on there, with its limits anew.
        max_tokens: Prompt and reply tokens of judges at most, likewise. Each call reserves beforehand what the largest
            one so far took; the first goes alone. So the limit is passed only by calls in flight that are larger.
        max_cost: Money for judges at most, likewise. Needs `price`.
        price: What a million prompt tokens and a million reply tokens cost. The report then says what was spent on
            judges.
        call_timeout: Seconds for one call, its tries together; the time in which it waits for its turn is not counted.
            A call that takes longer makes its sample `Unscored("timeout")`. Default: 120; no limit for a judge that
            says `in_turn`, as the embedded one does.
        sample_timeout: Seconds for one sample by one metric in which its calls are in flight. The time in which they
            wait for their turn is not counted.
        journal: A file, made if need be, where each outcome and reply is kept as it comes, and looked for before a
            judge is asked. One run at a time may use it; another one raises `JournalError`.
        share_replies: Whether requests that are the same share one reply: samples of one source are then asked the
            same questions, for one call. Without it, a journal keeps outcomes only. Default: True.
        progress: Whether to show how far it is: a bar on a terminal and in a notebook, else a line on standard error
            each 30 seconds. "auto", the default: the bar, but no lines.
        total: How many samples there are, for the bar, where `samples` does not say.
        name: What the report calls this run.
        on_result: Called with each sample's records when they are there, in the order in which samples end; each has
            its `row`, and the first holds the sample. When a run ends early, it gets what was made of the samples under
            way, too. What it raises ends the run, and it is not called again.
        on_bad_row: Called with each row that holds no sample, when it is read.
        stop_on_give_up: Whether the run ends when no judge is asked any more; else the rest of the samples is
            `Unscored("judge_error")`, which is the default.
        **renamed: None: an option that there is not, such as another library's, raises a TypeError that says its name.

    Returns:
        The report; its results are in the order of the input.

    Raises:
        ValueError: An argument is out of range, names nothing, or two metrics have one name; or none is named, and
            the rows do not say which; or none of the first 100 rows has the field that `group` names.
        TypeError: `samples` or `metrics` is no such thing, or there is no such option.
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
    from ragstone.batch.run import Run, refuse  # loaded when first used

    refuse("evaluate", renamed)

    options: RunOptions = {
        "llm": llm,
        "writer": writer,
        "embedder": embedder,
        "fields": fields,
        "group": group,
        "max_concurrency": max_concurrency,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "max_cost": max_cost,
        "price": price,
        "call_timeout": call_timeout,
        "sample_timeout": sample_timeout,
        "journal": journal,
        "share_replies": share_replies,
        "progress": progress,
        "total": total,
        "name": name,
        "on_result": on_result,
        "on_bad_row": on_bad_row,
        "stop_on_give_up": stop_on_give_up,
    }
    return Run(samples, metrics, options).evaluated()


async def aevaluate(
    samples: "Source",
    metrics: "Metrics" = None,
    *,
    llm: "Judge | str | object | None" = None,
    writer: "LLM | str | object | None" = None,
    embedder: "Embedder | str | object | None" = None,
    fields: "Mapping[str, str] | str | None" = None,
    group: str | None = None,
    max_concurrency: int = 16,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float] | None = None,
    call_timeout: float | None = None,
    sample_timeout: float | None = None,
    journal: "str | Path | None" = None,
    share_replies: bool = True,
    progress: "Shown" = "auto",
    total: int | None = None,
    name: str = "",
    on_result: "Callable[[Sequence[Record]], object] | None" = None,
    on_bad_row: "Callable[[BadLine], object] | None" = None,
    stop_on_give_up: bool = False,
    **renamed: "NoReturn",
) -> "Report":
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
    from ragstone.batch.run import Run, refuse

    refuse("aevaluate", renamed)
    options: RunOptions = {
        "llm": llm,
        "writer": writer,
        "embedder": embedder,
        "fields": fields,
        "group": group,
        "max_concurrency": max_concurrency,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "max_cost": max_cost,
        "price": price,
        "call_timeout": call_timeout,
        "sample_timeout": sample_timeout,
        "journal": journal,
        "share_replies": share_replies,
        "progress": progress,
        "total": total,
        "name": name,
        "on_result": on_result,
        "on_bad_row": on_bad_row,
        "stop_on_give_up": stop_on_give_up,
    }
    run = Run(samples, metrics, options)
    await run.all()
    return run.report()
