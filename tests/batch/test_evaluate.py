"""`evaluate` and `aevaluate`: from every kind of caller, every kind of source, with and without a journal."""

import asyncio
import contextvars
import gc
import inspect
import json
import threading
import tracemalloc
import weakref

import pytest

from ragstone import BaseLLM, ContextRelevancy, LLMReply, ResponseRelevancy, Sample, Score, Unscored
from ragstone.batch.evaluate import aevaluate, evaluate
from ragstone.batch.journal.file import JournalError
from ragstone.batch.journal.journal import Journal
from ragstone.batch.sources.samples import SourceError
from ragstone.clients import OpenAICompatible
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.openai_server import error  # noqa: TID252 - under importlib mode tests are no package

SAMPLE = Sample(user_input="Who wrote Emma?", retrieved_contexts=["Jane Austen wrote it. It rains."], id="emma")


def yes(request):
    return {"ids": [1]}


def metric(llm=None, **options):
    return ContextRelevancy(llm=llm or FakeLLM(yes), **options)


def rows(count):
    return [{"question": f"Who wrote book {i}?", "contexts": [f"Ann {i} did. It rains."]} for i in range(count)]


def values(report):
    return [result.outcome.value for result in report.results()]


class Instant(FakeLLM):
    """Counts its calls, and holds nothing of them."""

    calls = 0

    def generate(self, request, /):
        self.calls += 1
        self.requests.clear()
        return super().generate(request)


class TestResults:
    def test_one_per_sample_metric_and_draw_in_the_order_of_the_input(self):
        metrics = [metric(), ResponseRelevancy(llm=FakeLLM(lambda request: "no JSON"), embedder=FakeEmbedder())]
        samples = [SAMPLE.model_copy(update={"id": f"s{i}", "response": f"A{i}."}) for i in range(40)]
        found = list(evaluate(samples, metrics, repeat=2).results())
        assert [(each.row, each.sample_id, each.outcome.metric, each.draw) for each in found] == [
            (i, f"s{i}", name, draw)
            for i in range(40)
            for name in ("context_relevancy", "response_relevancy")
            for draw in (0, 1)
        ]
        assert {type(each.outcome) for each in found[::4]} == {Score}
        assert {each.outcome.reason for each in found[2::4]} == {"judge_unparseable"}

    def test_what_is_no_sample_is_told_and_the_rest_scored(self):
        report = evaluate([SAMPLE, "oops", 7, *rows(1)], [metric()])
        assert values(report) == [0.5, 0.5]
        assert [bad.line for bad in report.bad_rows] == [2, 3]
        assert [each.row for each in report.results()] == [0, 3]

    def test_the_report_has_samples_name_and_metrics(self):
        report = evaluate([SAMPLE, "oops", SAMPLE], [metric(threshold=0.7)], name="mine")
        assert [report.sample(row) for row in range(4)] == [SAMPLE, None, SAMPLE, None]
        assert report.name == "mine"
        assert [(each.name, each.threshold) for each in report.metrics] == [("context_relevancy", 0.7)]
        assert report.summary()["context_relevancy"].mean == 0.5

    def test_nothing_to_score(self):
        assert list(evaluate([], [metric()]).results()) == []

    def test_duplicate_ids_are_both_scored(self):
        llm = FakeLLM(yes)
        other = SAMPLE.model_copy(update={"user_input": "Who wrote Persuasion?"})
        assert values(evaluate([SAMPLE, other], [metric(llm)])) == [0.5, 0.5]
        assert len(llm.requests) == 2

    def test_the_same_sample_twice_is_asked_about_once_unless_told(self):
        llm = FakeLLM(yes)
        assert values(evaluate([SAMPLE] * 3, [metric(llm)])) == [0.5] * 3
        assert len(llm.requests) == 1
        evaluate([SAMPLE] * 3, [metric(llm)], share_replies=False)
        assert len(llm.requests) == 4

    def test_a_failing_judge(self, openai_server):
        server = openai_server(lambda body: error(401, "no such key"))
        report = evaluate(rows(3), [metric(OpenAICompatible("m", base_url=server.url))])
        assert {each.outcome.reason for each in report.results()} == {"judge_error"}

    def test_a_judge_that_is_given_up_is_said_so(self, caplog):
        report = evaluate(rows(400), [metric(FakeLLM(lambda request: ConnectionError("refused")))])
        assert len(list(report.results())) == 400
        assert "failed on 100 samples in a row" in caplog.text


class TestSources:
    @pytest.mark.parametrize("kind", ["list", "tuple", "generator", "iterator", "async", "path"])
    def test_every_kind(self, kind, tmp_path):
        given = rows(30)
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))

        async def arrive():
            for row in given:
                await asyncio.sleep(0)
                yield row

        source = {
            "list": lambda: given,
            "tuple": lambda: tuple(given),
            "generator": lambda: (row for row in given),
            "iterator": lambda: iter(given),
            "async": arrive,
            "path": lambda: tmp_path / "rows.jsonl",
        }[kind]
        report = evaluate(source(), [metric()])
        assert values(report) == [0.5] * 30
        assert report.sample(29).user_input == "Who wrote book 29?"
        again = asyncio.run(aevaluate(source(), [metric()]))
        assert values(again) == values(report)

    def test_fields(self):
        report = evaluate([{"q": "Who?", "text": ["Ann. Bob."]}], [metric()], fields={"user_input": "q",
                          "retrieved_contexts": "text"})  # fmt: skip
        assert values(report) == [0.5]

    def test_a_generator_of_any_length_in_constant_memory(self):
        """What grows is the disk. 5,000 rows of 2 kB would be 10 MB more."""
        llm = Instant(yes)
        alive = peak = 0

        def gone():
            nonlocal alive
            alive -= 1

        def endless():
            nonlocal alive, peak
            for i in range(10_000):
                if i == 5_000:
                    gc.collect()
                    tracemalloc.start()
                made = Sample(user_input=f"Q{i}?", retrieved_contexts=[f"A {i}. {'B' * 1900}"])
                weakref.finalize(made, gone)
                alive += 1
                peak = max(peak, alive)
                yield made

        try:
            report = evaluate(endless(), [NoCall(llm=llm)])
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4_000
        assert most < 5e6
        assert sum(1 for _ in report.results()) == 10_000
        assert report.sample(9_999).user_input == "Q9999?"

    def test_a_source_that_raises(self):
        def broken():
            yield from rows(2)
            raise OSError(5, "Input/output error")

        with pytest.raises(OSError, match="Input/output"):
            evaluate(broken(), [metric()])

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(SourceError):
            evaluate(tmp_path / "none.jsonl", [metric()])

    def test_one_dict(self):
        with pytest.raises(TypeError):
            evaluate(rows(1)[0], [metric()])


class NoCall(ContextRelevancy):
    """Scores at once, without a judge."""

    def _flow(self, sample):
        return self._score(1.0, "At once.")
        yield


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"repeat": 0}, "repeat: 0 is not"),
            ({"repeat": True}, "repeat: True"),
            ({"max_concurrency": 0}, "max_concurrency: 0"),
            ({"max_concurrency": 1.5}, "max_concurrency: 1.5"),
            ({"requests_per_minute": 0}, "requests_per_minute: 0 is no number above 0"),
            ({"tokens_per_minute": -1}, "tokens_per_minute: -1"),
            ({"call_timeout": float("nan")}, "call_timeout: nan"),
            ({"sample_timeout": float("inf")}, "sample_timeout: inf"),
            ({"sample_timeout": "5"}, "sample_timeout: '5'"),
            ({"progress": "yes"}, "progress: 'yes' is none of"),
        ],
    )
    def test_out_of_range(self, arguments, message):
        llm = FakeLLM(yes)
        with pytest.raises(ValueError, match=message):
            evaluate([SAMPLE], [metric(llm)], **arguments)
        assert llm.requests == []

    @pytest.mark.parametrize(
        ("metrics", "kind", "message"),
        [
            ([], ValueError, "metrics: is empty"),
            ([metric(), metric(granularity="chunk")], ValueError, "two of the name 'context_relevancy'"),
            (metric(), TypeError, "is one ContextRelevancy; pass a list"),
            (["context_relevancy"], TypeError, "holds a str"),
            ({metric()}, TypeError, "is one set"),
        ],
    )
    def test_metrics(self, metrics, kind, message):
        with pytest.raises(kind, match=message):
            evaluate([SAMPLE], metrics)

    def test_both_take_the_same(self):
        sync, asynchronous = map(inspect.signature, (evaluate, aevaluate))
        assert sync == asynchronous


class TestCallers:
    def test_in_a_running_loop(self):
        async def main():
            return values(evaluate([SAMPLE], [metric()]))

        assert asyncio.run(main()) == [0.5]

    def test_under_uvloop(self):
        uvloop = pytest.importorskip("uvloop")

        async def sync():
            return values(evaluate(rows(50), [metric()], max_concurrency=4))

        async def asynchronous():
            return values(await aevaluate(rows(50), [metric()], max_concurrency=4, sample_timeout=60, call_timeout=60))

        for main in (sync, asynchronous):
            loop = uvloop.new_event_loop()
            try:
                assert loop.run_until_complete(main()) == [0.5] * 50
                loop.run_until_complete(loop.shutdown_asyncgens())
            finally:
                loop.close()

    def test_in_many_threads_at_once_with_one_judge(self):
        llm = FakeLLM(yes)
        found = {}

        def work(name):
            found[name] = values(evaluate(rows(40), [metric(llm)], name=str(name)))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(found.values()) == [[0.5] * 40] * 6
        assert len(llm.requests) == 240

    @pytest.mark.parametrize("running", [False, True])
    def test_context_variables_are_seen_by_judge_and_source(self, running):
        who = contextvars.ContextVar("who", default="nobody")
        seen = []

        def reply(request):
            seen.append(who.get())
            return yes(request)

        def source():
            seen.append(who.get())
            yield SAMPLE

        who.set("me")
        llm = FakeLLM(reply)

        async def inside():
            return evaluate(source(), [metric(llm)])

        if running:
            asyncio.run(inside())
        else:
            evaluate(source(), [metric(llm)])
        assert seen == ["me", "me"]

    @pytest.mark.parametrize("running", [False, True])
    def test_it_leaves_no_thread_and_no_loop(self, running):
        async def inside():
            return evaluate(iter(rows(5)), [metric()])

        before = set(threading.enumerate())
        asyncio.run(inside()) if running else evaluate(iter(rows(5)), [metric()])
        ours = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("ragstone")]
        for thread in ours:
            thread.join(10)
        assert not any(thread.is_alive() for thread in ours)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()

    def test_what_the_source_raises_comes_through_from_the_other_thread(self):
        async def main():
            evaluate(iter([1 / 0 for _ in ()]), [metric()])
            evaluate((1 / 0 for _ in (1,)), [metric()])

        with pytest.raises(ZeroDivisionError):
            asyncio.run(main())

    def test_a_judge_of_one_loop_is_not_awaited_on_ours(self):
        class Theirs(FakeLLM):
            one_loop = True

            async def agenerate(self, request, /):
                raise AssertionError

        assert values(evaluate(rows(20), [metric(Theirs(yes))], max_concurrency=3)) == [0.5] * 20

    def test_aevaluate_scores_on_the_callers_loop(self):
        async def main():
            loop = asyncio.get_running_loop()

            class Judge(BaseLLM):
                model = "judge"

                async def agenerate(self, request, /):
                    assert asyncio.get_running_loop() is loop
                    return LLMReply('{"ids": [1]}')

            return values(await aevaluate([SAMPLE], [metric(Judge())]))

        assert asyncio.run(main()) == [0.5]

    @pytest.mark.parametrize("source", ["list", "generator", "async"])
    def test_aevaluate_cancelled_leaves_no_task(self, source, tmp_path):
        cancelled = []

        async def main():
            begun = asyncio.Event()

            class Stuck(BaseLLM):
                model = "stuck"

                async def agenerate(self, request, /):
                    begun.set()
                    try:
                        await asyncio.Event().wait()
                    finally:
                        cancelled.append(request)

            async def arrive():
                for row in rows(500):
                    yield row

            given = {"list": list, "generator": iter, "async": lambda _: arrive()}[source](rows(500))
            run = asyncio.ensure_future(
                aevaluate(given, [metric(Stuck())], max_concurrency=5, journal=tmp_path / "j.db", sample_timeout=99)
            )
            await begun.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            return asyncio.all_tasks()

        assert len(asyncio.run(main())) == 1
        assert 1 <= len(cancelled) <= 5

    def test_two_at_once_on_one_loop_and_one_journal(self, tmp_path):
        llm = FakeLLM(yes)

        async def main():
            with Journal(tmp_path / "j.db") as journal:
                runs = (aevaluate(rows(30), [metric(llm)], journal=journal) for _ in range(2))
                return [values(report) for report in await asyncio.gather(*runs)]

        assert asyncio.run(main()) == [[0.5] * 30] * 2


class TestJournal:
    def test_nothing_is_judged_twice(self, tmp_path):
        llm = FakeLLM(yes)
        reports = [evaluate(rows(20), [metric(llm)], journal=tmp_path / "j.db") for _ in range(3)]
        assert len(llm.requests) == 20
        first, second, third = ([each.outcome for each in report.results()] for report in reports)
        assert first == second == third

    def test_a_part_then_the_whole_in_another_order(self, tmp_path):
        llm = FakeLLM(yes)
        evaluate(rows(10), [metric(llm)], journal=tmp_path / "j.db")
        report = evaluate(reversed(rows(20)), [metric(llm)], journal=str(tmp_path / "j.db"))
        assert len(llm.requests) == 20
        assert len(values(report)) == 20

    def test_a_journal_object_stays_open(self, tmp_path):
        llm = FakeLLM(yes)
        with Journal(tmp_path / "j.db") as journal:
            evaluate(rows(3), [metric(llm)], journal=journal)
            evaluate(rows(3), [metric(llm)], journal=journal)
        assert len(llm.requests) == 3

    def test_systems_are_asked_the_same(self, tmp_path):
        """Two metrics' runs over one source share what is asked about the source alone, from run to run."""
        llm = FakeLLM(lambda request: {"ids": [1]})
        for name in ("a", "b"):
            answers = [{**row, "answer": f"The answer of {name}."} for row in rows(5)]
            evaluate(answers, [metric(llm)], journal=tmp_path / "j.db", name=name)
        assert len(llm.requests) == 5  # context relevancy does not look at the answer

    def test_what_failed_is_asked_again(self, tmp_path):
        down = FakeLLM(lambda request: ConnectionError("refused"))
        report = evaluate(rows(3), [metric(down)], journal=tmp_path / "j.db")
        assert {type(each.outcome) for each in report.results()} == {Unscored}
        assert values(evaluate(rows(3), [metric(FakeLLM(yes))], journal=tmp_path / "j.db")) == [0.5] * 3

    def test_a_file_that_is_no_journal(self, tmp_path):
        (tmp_path / "j.db").write_bytes(b"not a database" * 1000)
        llm = FakeLLM(yes)
        with pytest.raises(JournalError):
            evaluate(rows(3), [metric(llm)], journal=tmp_path / "j.db")
        assert llm.requests == []
