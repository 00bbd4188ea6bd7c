"""`evaluate` and `aevaluate`: from every kind of caller, every kind of source, with and without a journal."""

import asyncio
import contextvars
import gc
import inspect
import json
import os
import re
import signal
import sys
import threading

import pytest

from ragstone import ContextRelevancy, Faithfulness, Limits, ResponseRelevancy, Sample
from ragstone.batch.estimation import synthetic_reply
from ragstone.batch.evaluate import aevaluate, evaluate
from ragstone.batch.run import BatchRun, Interrupted
from ragstone.local import LocalEmbedder
from ragstone.metrics.names import GROUPS
from ragstone.sources import BadLine, SourceError
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.judges import Slow  # noqa: TID252
from ..support.metrics import Rounds  # noqa: TID252

SAMPLE = Sample(user_input="Who wrote Emma?", retrieved_contexts=["Jane Austen wrote it. It rains."], id="emma")


def yes(request):
    return {"ids": [1]}


def metric(llm=None, **options):
    return ContextRelevancy(llm=llm or FakeLLM(yes), **options)


def rows(count):
    return [{"question": f"Who wrote book {i}?", "contexts": [f"Ann {i} did. It rains."]} for i in range(count)]


def values(report):
    return [result.outcome.value for result in report.results()]


class Listener:
    def __init__(self, on_result, on_bad_row=print):
        self.on_result = on_result
        self.on_bad_row = on_bad_row


class TestResults:
    def test_the_report_has_results_samples_bad_rows_name_and_metrics(self):
        other = SAMPLE.model_copy(update={"user_input": "Who wrote Persuasion?"})  # of the same id
        report = evaluate([SAMPLE, "oops", 7, other], [metric(threshold=0.7)], name="mine")
        assert [(each.row, each.sample_id) for each in report.results()] == [(0, "emma"), (3, "emma")]
        assert [report.sample(each) for each in report.results()] == [SAMPLE, other]
        assert [bad.line for bad in report.bad_rows] == [2, 3]
        assert [(each.name, each.threshold) for each in report.metrics] == [("context_relevancy", 0.7)]
        assert (report.name, report.summary()["context_relevancy"].mean) == ("mine", 0.5)
        assert list(evaluate([], [metric()]).results()) == []


class TestSources:
    def test_every_kind(self, tmp_path):
        given = rows(30)
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))

        for source in (lambda: iter(given), lambda: tmp_path / "rows.jsonl"):
            for report in (evaluate(source(), [metric()]), asyncio.run(aevaluate(source(), [metric()]))):
                assert values(report) == [0.5] * 30
                assert report.sample(list(report.results())[29]).user_input == "Who wrote book 29?"

    def test_what_is_wrong_with_a_source_is_raised_also_from_another_thread(self, tmp_path):
        def broken(*errors):
            yield from rows(2)
            raise (*errors, OSError(5, "Input/output error"))[0]

        async def inside():
            evaluate(broken(), [metric()])

        for run in (lambda: evaluate(broken(), [metric()]), lambda: asyncio.run(inside())):
            with pytest.raises(OSError, match="Input/output"):
                run()
        for error in (SystemExit(1), asyncio.CancelledError()):  # neither the run's own, nor waited for
            with pytest.raises(SourceError, match=f"samples: reading them was ended by {type(error).__name__}") as left:
                evaluate(broken(error), [metric()])
            assert values(left.value.report) == [0.5] * 2
        with pytest.raises(SourceError):
            evaluate(tmp_path / "none.jsonl", [metric()])
        with pytest.raises(TypeError):
            evaluate(rows(1)[0], [metric()])


def test_arguments_that_cannot_be_are_refused_before_anything_is_asked():
    llm = FakeLLM(yes)
    for argument, value in [
        ("max_concurrency", 1.5), ("requests_per_minute", 0), ("tokens_per_minute", -1), ("max_calls", 0),
        ("max_cost", True), ("call_timeout", float("nan")), ("sample_timeout", float("inf")),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"^{argument}: {value!r} (is|should be) "):
            Limits(**{argument: value})
    for argument, value in [("progress", "yes"), ("journal", 7)]:
        with pytest.raises(ValueError, match=f"^{argument}: {value!r} (is|should be) "):
            evaluate([SAMPLE], [metric(llm)], **{argument: value})
    for metrics, kind, message in [
        ([], ValueError, "metrics: is empty"),
        ([metric(), metric(granularity="chunk")], ValueError, "two of the name 'context_relevancy'"),
        ([3], TypeError, "metrics: holds a int"),
        (["context_relevancy"], ValueError, "llm: is missing; pass a judge for 'context_relevancy'"),
        ({metric()}, TypeError, "is one set"),
    ]:
        with pytest.raises(kind, match=message):
            evaluate([SAMPLE], metrics)
    for names, options, message in [
        (["context_relevance"], {"llm": llm}, "metrics: there is no metric 'context_relevance'; there are "),
        (["context_relevancy"], {"llm": "gpt"}, "llm: 'gpt' is none of local, "),
        (["response_relevancy"], {"llm": llm, "embedder": "gpt"}, "embedder: 'gpt' is none of local, "),
        (["response_relevancy"], {"llm": llm}, "embedder: FakeLLM does not embed"),
    ]:
        with pytest.raises(ValueError, match=message):
            evaluate([SAMPLE], names, **options)
    with pytest.raises(ValueError, match="metrics: none is named, and no row of the first 1 has retrieved_contexts"):
        evaluate([Sample(user_input="Q?")], llm=llm)
    with pytest.raises(TypeError, match="holds the class Faithfulness; pass an object: Faithfulness"):
        evaluate([SAMPLE], [Faithfulness], llm=llm)
    assert llm.requests == []
    assert inspect.signature(evaluate).parameters == inspect.signature(aevaluate).parameters


class Polite(ContextRelevancy):
    """A user's own metric."""

    name = "polite"


def test_metrics_and_the_judge_by_name():
    llm = FakeLLM(yes)
    report = evaluate([SAMPLE], ["context_relevancy", f"{__name__}:Polite"], llm=llm, embedder=FakeEmbedder())
    assert [(each.outcome.metric, each.outcome.value) for each in report.results()] == [
        ("context_relevancy", 0.5), ("polite", 0.5),
    ]  # fmt: skip
    scored = evaluate(rows(1), ["context_relevancy"], llm="ragstone.judge_names:NullJudge")
    assert "a NullJudge cannot answer" in next(iter(scored.results())).outcome.detail


class Others(Rounds):
    name = "others"


def test_a_judge_that_answers_in_turn_is_asked_by_sample_metric_and_round():
    async def others_go_on(request):
        for _ in range(20):
            await asyncio.sleep(0)

    judge = FakeLLM(slow := Slow(others_go_on))
    judge.in_turn = True
    given = [{"response": f"Book {i}."} for i in range(3)]
    report = evaluate(given, [Rounds(llm=judge, sizes=(3, 3)), Others(llm=judge, sizes=(3, 3))])
    assert values(report) == [1.0] * 6
    assert slow.most == 1
    asked = [(each.task, *re.search(r"Book (\d).*(\d\.\d):", each.user, re.DOTALL).groups()) for each in judge.requests]
    assert asked == [
        (f"{name}.say", str(row), f"{number}.{i}")
        for row in range(3) for name in ("rounds", "others") for number in range(2) for i in range(3)
    ]  # fmt: skip


class TestGroups:
    judge = FakeLLM(yes)

    def test_a_group_stands_for_its_metrics_and_what_is_named_twice_is_made_once(self):
        options = {"llm": self.judge, "embedder": FakeEmbedder()}
        whole = evaluate([SAMPLE], "rag", **options)
        assert [each.name for each in whole.metrics] == list(GROUPS["rag"])
        own = metric(self.judge)
        mixed = evaluate([SAMPLE], ["faithfulness", Polite(llm=self.judge), "summary", "faithfulness", own], **options)
        assert [each.name for each in mixed.metrics] == ["faithfulness", "polite", *GROUPS["summary"], own.name]
        assert evaluate([SAMPLE], own).summary()[own.name].mean == 0.5

    @pytest.mark.parametrize("kind", ["list", "generator"])
    def test_where_no_metric_is_named_the_first_row_that_has_enough_decides(self, kind, capfd):
        read = []
        full = {"user_input": "Who?", "retrieved_contexts": ["Ann. Bob."], "response": "Ann."}
        given = ["no sample", {"user_input": "Who?", "response": "Ann."}, full, *[{"question": "?"}] * 500]

        def source():
            for each in given:
                read.append(each)
                yield each

        class EnoughError(Exception):
            pass

        def stop(records):
            raise EnoughError

        samples = {"list": given, "generator": source()}[kind]
        run = BatchRun(samples, llm=self.judge, embedder=FakeEmbedder(), limits=Limits(max_concurrency=1))
        with pytest.raises(EnoughError):
            run.evaluated(Listener(stop))
        assert len(read) < 100
        line = (
            f"Metrics: rag ({', '.join(GROUPS['rag'])}), because row 3 has user_input, retrieved_contexts and response."
        )
        assert capfd.readouterr().err.splitlines()[0] == line
        report = evaluate(samples if kind == "list" else given, llm=self.judge, embedder=FakeEmbedder())
        assert (report.aggregates().rows, len(report.bad_rows)) == (502, 1)

    def test_without_a_question_it_is_a_summary_and_without_a_sample_nothing_is_said(self, capfd):
        report = evaluate([{"contexts": ["Ann. Bob."], "answer": "Ann."}], llm=self.judge)
        assert [each.name for each in report.metrics] == list(GROUPS["summary"])
        assert {each.outcome.reason for each in report.results()} == {"judge_unparseable"}  # none is missing_input
        assert capfd.readouterr().err.startswith("Metrics: summary (")
        assert evaluate([], llm=self.judge, embedder=FakeEmbedder()).aggregates().rows == 0
        assert capfd.readouterr().err == ""

    @pytest.mark.usefixtures("untraced")
    def test_ctrl_c_ends_it_while_the_first_row_is_waited_for(self):
        def silent():
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait()
            yield

        with pytest.raises(Interrupted):
            evaluate(silent(), llm=self.judge)


class TestListeners:
    def test_they_are_told_as_samples_end_with_each_samples_records(self):
        calls = []
        source = [*rows(30), "oops", *rows(3)]
        run = BatchRun(source, [metric(), Faithfulness(llm=FakeLLM(yes))])
        run.evaluated(Listener(calls.append, calls.append))
        assert [call for call in calls if isinstance(call, BadLine)] == [BadLine(31, "is str, not a Sample or a dict")]
        by_row = {call[0].row: call for call in calls if not isinstance(call, BadLine)}
        assert sorted(by_row) == [*range(30), *range(31, 34)]
        assert [record.outcome.metric for record in by_row[0]] == ["context_relevancy", "faithfulness"]
        assert by_row[0][0].sample.user_input == "Who wrote book 0?"
        assert by_row[0][1].sample is None

    def test_what_they_raise_ends_the_run(self):
        def full(records):
            raise OSError(28, "No space left on device")

        llm = FakeLLM(yes)
        with pytest.raises(OSError, match="No space"):
            BatchRun(rows(500), [metric(llm)]).evaluated(Listener(full))
        assert len(llm.requests) < 100

    def test_a_run_may_end_when_the_judge_is_given_up(self):
        down = FakeLLM(ConnectionError("refused"))
        for stop, count in ((False, 300), (True, 100)):
            report = evaluate(rows(300), [metric(down)], stop_on_give_up=stop, limits=Limits(max_concurrency=4))
            assert len(list(report.results())) == count
            assert report.gave_up == ("the judge failed on 100 samples in a row",)


class TestCallers:
    @pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
    def test_where_a_loop_runs(self, kind):
        loop = pytest.importorskip(kind).new_event_loop()
        limits = Limits(max_concurrency=4, sample_timeout=60, call_timeout=60)

        async def on_this_loop(request):
            assert asyncio.get_running_loop() is loop
            return {"ids": [1]}

        async def main():
            inside = values(evaluate(rows(50), [metric()], limits=Limits(max_concurrency=4)))
            return inside + values(await aevaluate(rows(50), [metric(FakeLLM(on_this_loop))], limits=limits))

        try:
            assert loop.run_until_complete(main()) == [0.5] * 100
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    @pytest.mark.parametrize("running", [False, True])
    def test_context_variables_are_seen_and_no_thread_and_no_loop_is_left(self, running):
        who = contextvars.ContextVar("who", default="nobody")
        seen = []

        def source():
            seen.append(who.get())
            yield SAMPLE

        llm = FakeLLM(lambda request: seen.append(who.get()) or yes(request))

        async def inside():
            return evaluate(source(), [metric(llm)])

        before = set(threading.enumerate())
        who.set("me")
        asyncio.run(inside()) if running else evaluate(source(), [metric(llm)])
        assert seen == ["me", "me"]
        ours = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("ragstone")]
        for thread in ours:
            thread.join(10)
        assert not any(thread.is_alive() for thread in ours)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()


@pytest.mark.parametrize("first", ["response_relevancy", "context_relevancy"])
def test_a_named_embedder_is_made_once_for_all_metrics(tmp_path, monkeypatch, first):
    made = "from ragstone.testing import FakeEmbedder\nMADE = []\n"
    (tmp_path / f"embeds_for_{first}.py").write_text(
        f"{made}def embedder():\n    MADE.append(1)\n    return FakeEmbedder()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    names = sorted(["response_relevancy", "context_relevancy"], key=lambda name: name != first)
    judge = FakeLLM(synthetic_reply, asking="one_by_one", gives_probabilities=True)
    evaluate([SAMPLE], names, llm=judge, embedder=f"embeds_for_{first}:embedder", progress=False)
    assert len(sys.modules[f"embeds_for_{first}"].MADE) == 1


@pytest.mark.parametrize("made", [False, True], ids=["by name", "objects"])
def test_the_embedder_that_goes_with_the_judge_is_made_once_for_all_metrics(made):
    judge = FakeLLM(yes)
    judge.embedder = "local"

    def there():
        gc.collect()
        return {id(each) for each in gc.get_objects() if isinstance(each, LocalEmbedder)}

    before, during = there(), []
    metrics = [ResponseRelevancy(), ContextRelevancy()] if made else ["response_relevancy", "context_relevancy"]
    run = BatchRun([Sample(id="1")], metrics, llm=judge)
    run.evaluated(Listener(lambda _: during.append(there() - before)))
    assert [len(each) for each in during] == [1]
